"""The page of the Python API has every public name, and no other."""

import importlib
import re
from pathlib import Path

from support.public_api import MODULES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
WHOLE = ("tablelog.errors",)
"""Modules of which the page shows all members."""
LEFT_OUT = {"tablelog.__version__"}


def test_the_page_has_every_public_name() -> None:
    wanted = set()
    for module, names in MODULES.items():
        if module in (*WHOLE, "tablelog.spark.exceptions"):  # the latter has the names of the former
            continue
        known = names or importlib.import_module(module).__all__
        wanted |= {f"{module}.{name}" for name in known}
    shown = re.findall(r"^::: (\S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(shown) == len(set(shown))
    assert set(shown) == wanted - LEFT_OUT | set(WHOLE)
