"""A short soak on the local disk: two Spark drivers, two writers without Spark and a reader; one of each is killed."""

from pathlib import Path

import pytest

from soak.__main__ import soak

SECONDS = 40.0


@pytest.mark.timeout(600)
def test_a_short_soak_finds_nothing(tmp_path: Path) -> None:
    made = soak("local", SECONDS, 11, str(tmp_path))
    assert made.problems == []
    assert made.kills["core-1"] > 0
    counts = made.counts["local"]
    assert min(counts["commits to main"], counts["commits to events"], counts["versions read and compared"]) > 5
