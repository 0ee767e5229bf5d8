"""The public names and their parameters are those of tests/golden/public_api.txt: each change of them is noticed."""

import re
from pathlib import Path

from support import public_api

PAGE = Path(__file__).resolve().parents[1] / "docs" / "api-stability.md"


def test_the_public_api_is_the_kept_one() -> None:
    kept, now = (text.splitlines() for text in (public_api.KEPT.read_text(encoding="utf-8"), public_api.described()))
    gone, new = ([line for line in one if line not in other] for one, other in ((kept, now), (now, kept)))
    assert (gone, new) == ([], []), (
        "The public API has changed. If that is intended, follow docs/api-stability.md, say so in CHANGELOG.md, "
        "and run `cd tests && ../.venv/bin/python -m support.public_api`"
    )


def test_the_page_lists_the_public_modules() -> None:
    listed = re.findall(r"^\| `(tablelog[\w.]*)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == [*public_api.MODULES]


def test_what_a_user_may_rely_on_is_described() -> None:
    lines = public_api.described().splitlines()
    assert "tablelog.spark.enable(spark)" in lines
    assert "tablelog.spark.DeltaTable.history(self, limit=None)" in lines
    assert "tablelog.logstore.LogStore.write(self, path, data, *, overwrite=False)" in lines
    assert "exit code 130" in lines
    assert not [line for line in lines if re.search(r" at 0x|<", line)]
