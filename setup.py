"""Find the packages below src/ and conformance/ and give them their installed names, so that none is forgotten."""

from setuptools import find_packages, setup


def prefixed(name: str, directory: str) -> list[str]:
    return [name, *(f"{name}.{package}" for package in find_packages(directory))]


setup(packages=prefixed("tablelog", "src") + prefixed("tablelog.conformance", "conformance"))
