"""tablelog in Spark's Python workers: what a task says where it isn't as on the driver."""

import sys
from collections.abc import Iterator
from json import tool
from types import SimpleNamespace
from typing import Any

import pytest

import tablelog
from tablelog.engine.jvm import worker_python


def doubled(numbers: Iterator[int]) -> Iterator[int]:
    return (2 * number for number in numbers)


def test_the_work_is_done_where_the_version_is_the_same() -> None:
    assert list(worker_python.with_tablelog(doubled)(iter([1, 2]))) == [2, 4]


def test_another_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    run = worker_python.with_tablelog(doubled)
    driver = tablelog.__version__
    monkeypatch.setattr(tablelog, "__version__", "0.0.9")
    with pytest.raises(
        ImportError, match=f"has tablelog 0.0.9, and the driver's has {driver}: install tablelog {driver}"
    ):
        next(run(iter([1])))


@pytest.mark.parametrize("module", ["tablelog", "json.tool"])
def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    run: Any = worker_python.with_tablelog(doubled if module == "tablelog" else tool.main)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, module, None)
    said = "doesn't have tablelog" if module == "tablelog" else r"lacks the package json\.tool"
    with pytest.raises(ImportError, match=rf"^tablelog\.errors\.UnsupportedEnvironmentError: [^\n]*{said}[^\n]*$"):
        next(run(iter([1])))


def test_only_the_wheel_of_tablelog_is_included() -> None:
    files = "file:/a/tablelog-1.0-py3-none-any.whl,file:/a/other-1.0.whl,file:/a/tablelog-1.0.zip"
    context = SimpleNamespace(_python_includes=["known.zip"])
    spark: Any = SimpleNamespace(sparkContext=context, conf=SimpleNamespace(get=lambda key, default: files))
    for _ in range(2):
        worker_python.include_wheel(spark)
    assert context._python_includes == ["known.zip", "tablelog-1.0-py3-none-any.whl"]
