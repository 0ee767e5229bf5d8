"""`python -m tablelog.settings` prints the reference page of the settings."""

import sys

from .reference import page

if __name__ == "__main__":
    sys.stdout.write(page())
