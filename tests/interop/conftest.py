"""`TABLELOG_SHARE=2/3`: of the cases of each parametrized test, run only the second third. CI does, by turns."""

import os
from itertools import groupby
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
SHARE = os.environ.get("TABLELOG_SHARE", "1/1")
_NUMBER, _SHARES = map(int, SHARE.split("/"))


def pytest_report_header() -> str:
    return f"interop: share {SHARE} of the cases of each test"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep each test that has few cases whole, and of the others the cases of this share."""
    kept = [item for item in items if FOLDER not in item.path.parents]
    items_here = [item for item in items if FOLDER in item.path.parents]
    for _, cases in groupby(items_here, key=lambda item: item.nodeid.partition("[")[0]):
        all_cases = list(cases)
        kept += all_cases if len(all_cases) < _SHARES else all_cases[_NUMBER - 1 :: _SHARES]
    deselected = set(items) - set(kept)
    if deselected:
        config.hook.pytest_deselected(items=sorted(deselected, key=lambda item: item.nodeid))
        items[:] = kept
