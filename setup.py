"""What pyproject.toml can't say: the packages below src/ and conformance/, and a description without links to files."""

import re
from pathlib import Path

from setuptools import find_packages, setup


def prefixed(name: str, directory: str) -> list[str]:
    """The packages of a directory by their installed names, so that none is forgotten."""
    return [name, *(f"{name}.{package}" for package in find_packages(directory))]


def description() -> str:
    """The README for a package index, where its pictures, and its links to other files, would lead nowhere."""
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    text = re.sub(r"\[!\[[^\]]*\]\([^)]*\)\]\([^)]*\)\n*", "", text)
    return re.sub(r"\[([^\]]+)\]\((?!https?://)[^)]*\)", r"\1", text)


setup(
    packages=prefixed("tablelog", "src") + prefixed("tablelog.conformance", "conformance"),
    long_description=description(),
    long_description_content_type="text/markdown",
)
