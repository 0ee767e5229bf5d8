"""The publishing workflow stops at a tag that isn't the version of the package, or that has no released section."""

import subprocess
import sys
from pathlib import Path

import pytest

import release_tag

PROJECT = '[project]\nname = "tablelog"\nversion = "1.2.3"\n'
CHANGELOG = "# Changelog\n\n## 1.2.3 (2030-01-31)\n\n### Added\n"


@pytest.mark.parametrize(
    ("tag", "changelog", "message"),
    [
        ("v1.2.3", CHANGELOG, None),
        ("1.2.3", CHANGELOG, "the tag is 1.2.3, and the version in pyproject.toml is 1.2.3"),
        ("v1.2.4", CHANGELOG, "the tag is v1.2.4, and the version in pyproject.toml is 1.2.3"),
        ("v1.2.3", CHANGELOG.replace("1.2.3", "1.2.30"), "no section for 1.2.3"),
        ("v1.2.3", CHANGELOG.replace("2030-01-31", "unreleased"), "says that 1.2.3 is unreleased"),
    ],
)
def test_a_tag(tag: str, changelog: str, message: str | None) -> None:
    found = release_tag.problem(tag, PROJECT, changelog)
    assert found is None if message is None else message in str(found)


def test_the_workflow_checks_its_tag_before_it_builds() -> None:
    workflow = (release_tag.ROOT / ".github" / "workflows" / "publish.yml").read_text(encoding="utf-8")
    command = 'python tests/release_tag.py "$GITHUB_REF_NAME"'
    assert 0 < workflow.index(command) < workflow.index("make release-check")
    program = Path(release_tag.__file__)
    done = subprocess.run([sys.executable, program, "v0.0.0"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("the tag is v0.0.0")
