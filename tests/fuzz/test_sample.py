"""A sample of the cases of each target, always the same: `make fuzz` runs more of them."""

import resource
import time

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from fuzz.engines import inputs
from fuzz.target import Target, is_valid
from fuzz.targets import TARGETS

EXAMPLES = 25


@pytest.mark.parametrize("name", TARGETS)
def test_each_case_gives_a_right_answer_or_a_typed_error(name: str) -> None:
    target = TARGETS[name]
    valid = [is_valid(target, data) for data in target.seeds]
    assert any(valid)

    @settings(
        max_examples=EXAMPLES,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs(target))
    def run(cases: list[bytes]) -> None:
        for data in cases:
            bounded(target, data)

    run()


def bounded(target: Target, data: bytes) -> None:
    """One case, within its bounds of time and memory."""
    kilobytes, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    is_valid(target, data)
    assert time.process_time() - started < target.seconds
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - kilobytes < target.megabytes << 10
