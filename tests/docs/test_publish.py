"""The workflow that publishes a release stops where the tag, the version and the changelog differ."""

import os
import re
import subprocess
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = (ROOT / ".github" / "workflows" / "publish.yml").read_text(encoding="utf-8")
STEP = re.search(r"- name: compare the tag with the version\n +run: \|\n((?: {10}.*\n)+)", WORKFLOW)
PROJECT = '[project]\nname = "tablelog"\nversion = "1.2.3"\nrequires-python = ">=3.11"\n'


def compared(folder: Path, tag: str, changelog: str) -> subprocess.CompletedProcess[str]:
    """Run the step of the workflow for a tag, in a folder with these files, as GitHub runs it."""
    assert STEP is not None
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "CHANGELOG.md").write_text(changelog)
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", textwrap.dedent(STEP[1])],
        cwd=folder,
        env={**os.environ, "GITHUB_REF_NAME": tag},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_tag_with_the_version_and_a_dated_changelog_passes(tmp_path: Path) -> None:
    done = compared(tmp_path, "v1.2.3", "# Changelog\n\n## 1.2.3 (2026-11-30)\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("tag", "heading", "said"),
    [
        ("v1.2.4", "## 1.2.3 (2026-11-30)", "the tag is v1.2.4, the version 1.2.3"),
        ("1.2.3", "## 1.2.3 (2026-11-30)", "the tag is 1.2.3"),
        ("v1.2.3rc1", "## 1.2.3 (2026-11-30)", "the tag is v1.2.3rc1"),
        ("v1.2.3", "## 1.2.3 (unreleased)", "CHANGELOG.md has no heading with 1.2.3"),
        ("v1.2.3", "## 1.2.2 (2026-11-30)", "CHANGELOG.md has no heading with 1.2.3"),
    ],
)
def test_another_tag_or_changelog_stops_the_release(tmp_path: Path, tag: str, heading: str, said: str) -> None:
    done = compared(tmp_path, tag, f"# Changelog\n\n{heading}\n")
    assert done.returncode == 1
    assert said in done.stdout


def test_the_step_comes_before_the_release_is_built() -> None:
    assert STEP is not None
    assert STEP.start() < WORKFLOW.index("make release-check")


def test_the_version_of_the_project_is_found() -> None:
    assert (
        len(re.findall(r'^version = "\d+\.\d+\.\d+"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)) == 1
    )
