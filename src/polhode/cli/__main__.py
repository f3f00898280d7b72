"""``python -m polhode.cli``."""

from . import main

main()
