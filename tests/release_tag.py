"""`python tests/release_tag.py TAG`: check that a tag is `v` and the version of the package, which has a changelog."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def problem(tag: str, project: str, changelog: str) -> str | None:
    """What is wrong with a tag, by the texts of pyproject.toml and of the changelog; None if nothing is."""
    version = tomllib.loads(project)["project"]["version"]
    if tag != f"v{version}":
        return f"the tag is {tag}, and the version in pyproject.toml is {version}"
    heading = re.search(rf"^## {re.escape(version)}(?![\w.])(.*)$", changelog, re.MULTILINE)
    if heading is None:
        return f"CHANGELOG.md has no section for {version}"
    if "unreleased" in heading[1]:
        return f"CHANGELOG.md says that {version} is unreleased"
    return None


def main(tag: str) -> None:
    found = problem(tag, (ROOT / "pyproject.toml").read_text("utf-8"), (ROOT / "CHANGELOG.md").read_text("utf-8"))
    if found is not None:
        sys.exit(found)
    print(f"{tag} is the version of the package")


if __name__ == "__main__":
    main(sys.argv[1])
