"""`TABLELOG_SHARE=2/3`: of the cases of each test file, select only each third, from the second on.

CI has no time for all cases of the slowest tests, so it runs another share of them with each commit.
"""

import os
from itertools import groupby

import pytest

SHARE = os.environ.get("TABLELOG_SHARE", "1/1")


def select_share(items: list[pytest.Item], share: str = SHARE) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The selected items and the others. A file with fewer cases than there are shares keeps all of them."""
    number, shares = map(int, share.split("/"))
    selected: list[pytest.Item] = []
    for _, cases in groupby(items, key=lambda item: item.nodeid.partition("::")[0]):
        all_cases = list(cases)
        selected += all_cases if len(all_cases) < shares else all_cases[number - 1 :: shares]
    chosen = {item.nodeid for item in selected}
    return selected, [item for item in items if item.nodeid not in chosen]
