"""Each broken store is caught by the checks that are meant for it, and a correct one by none."""

import os
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from tablelog.conformance import CHECKS, Check, GuaranteeBrokenError, Level, Target
from tablelog.conformance.checks import try_out
from tablelog.conformance.mutants import MUTANTS, POSITIVE_CONTROL, Mutant
from tablelog.conformance.runner import first_touch

BY_NAME = {check.name: check for check in CHECKS}
# A store that can't even do this fails everything.
PLAINEST = {"reads_what_was_written", "listed_paths_are_the_files"}
# It says how strong the races were, and there is no store to be caught.
NO_JUDGEMENT = {"the_races_overlap"}


@pytest.fixture
def directory() -> Iterator[str]:
    """Where flushing costs nothing, if there is such a place."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as name:
        yield name


def run(check: Check, target: Target) -> None:
    try_out(
        check,
        target.factory,
        f"{target.root}/{check.name}",
        seconds=15,
        endpoint=target.endpoint,
        through=target.through,
    )


def _mutants_of_checks() -> Iterator[Any]:
    """Each broken store with each check that catches it. `make test` runs the first store of each check."""
    seen: set[str] = set()
    for mutant in MUTANTS:
        for check in mutant.caught_by:
            marks = [pytest.mark.slow] if check in seen else []
            seen.add(check)
            yield pytest.param(mutant, check, id=f"{mutant.name}-{check}", marks=marks)


@pytest.mark.parametrize(("mutant", "check"), list(_mutants_of_checks()))
@pytest.mark.thorough
def test_a_broken_store_is_caught(mutant: Mutant, check: str, directory: str) -> None:
    missing = mutant.available()
    if missing:
        pytest.skip(missing)
    with pytest.raises(GuaranteeBrokenError):
        run(BY_NAME[check], mutant.make_target(directory))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_store_can_be_tried(mutant: Mutant, directory: str) -> None:
    """A calibration that can't write one file with it would count it as missed."""
    missing = mutant.available()
    if missing:
        pytest.skip(missing)
    target = mutant.make_target(directory)
    assert first_touch(target, f"{target.root}/place")[0] is None


QUICK = [check for check in CHECKS if check.level is Level.QUICK]


@pytest.mark.parametrize("check", QUICK, ids=lambda check: check.name)
@pytest.mark.slow
def test_a_correct_store_of_files_is_not(check: Check, directory: str) -> None:
    run(check, POSITIVE_CONTROL(directory))


def test_every_check_that_judges_has_a_store_to_catch() -> None:
    assert {check.name for check in CHECKS} - {name for mutant in MUTANTS for name in mutant.caught_by} == (
        PLAINEST | NO_JUDGEMENT
    )


def test_mutants_have_names_of_their_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
