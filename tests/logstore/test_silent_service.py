"""A service that accepts connections and never replies."""

import pytest

from support.clocks import ManualClock
from tablelog.logstore.common.conditional_put import persist
from tablelog.logstore.common.retry_policy import RetryPolicy


@pytest.mark.parametrize(("seconds", "attempts"), [(60, 2), (5, 4), (0, 4), (91, 1)])
def test_time_outs_are_repeated_for_a_limited_time(seconds: float, attempts: int) -> None:
    clock, sent = ManualClock(), []

    def request() -> None:
        sent.append(clock.time)
        clock.time += seconds
        raise TimeoutError

    with pytest.raises(TimeoutError):
        persist(request, lambda _: True, lambda _: False, RetryPolicy(clock=clock))
    assert len(sent) == attempts
