"""``python -m polhode``."""

from .cli import main

main()
