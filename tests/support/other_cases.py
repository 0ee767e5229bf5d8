"""Of a test with many long cases, `make test` runs the first and the last: if it uses Spark, or is marked `many`.

Of one that is marked `one_case`, it runs the first. The other cases count as slow, so `make test-slow` runs them. A
list of cases begins with the plainest. The last case of a product of lists differs from the first in each of them.
"""

from itertools import groupby

import pytest


def mark_other_cases(items: list[pytest.Item]) -> None:
    """Mark as slow each case that `make test` leaves out."""
    for _, group in groupby(items, key=lambda item: item.nodeid.partition("[")[0]):
        cases = [item for item in group if item.get_closest_marker("slow") is None]
        for item in cases[1:-1]:
            if "spark" in getattr(item, "fixturenames", ()) or item.get_closest_marker("many"):
                item.add_marker(pytest.mark.slow)
        for item in cases[-1:] if len(cases) > 1 else ():
            if item.get_closest_marker("one_case"):
                item.add_marker(pytest.mark.slow)
