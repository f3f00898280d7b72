"""``python -m polhode``."""

import sys

from ._extras import needed
from .errors import InputError


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        cli = needed("polhode.cli")
    except InputError as fault:
        sys.exit(f"polhode: {fault}")
    cli.main()


if __name__ == "__main__":
    main()
