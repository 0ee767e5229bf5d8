"""The text of `--version`."""

from importlib.metadata import version


def shown_version() -> str:
    """The name of the command and the version of the package."""
    return f"tablelog {version('tablelog')}"
