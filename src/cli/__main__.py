"""`python -m tablelog.cli` is `tablelog`."""

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
