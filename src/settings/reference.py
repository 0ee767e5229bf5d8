"""The reference page of all settings, docs/settings.md, made of their declarations."""

from collections.abc import Iterable

from . import declarations, spark_own, unsupported
from .setting import Family, Setting

_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1, "bytes"))

_HEAD = """\
# Settings

`python -m tablelog.settings > docs/settings.md` makes this page of the declarations in `src/settings`: change those.

Settings are keys of the session's configuration: `spark.conf.set(key, value)`, or `--conf` at the start. What belongs
to the log and to stores is also taken by `DeltaLog.for_path(path, conf={...})`. A value that isn't allowed is an
`InvalidArgumentError` that names the key, the value and what is allowed (`LogStoreConfigurationError` for the keys of
stores). Properties of tables are another thing: see [features](guide/features.md).
"""

_OF_SPARK = """
## Spark's own settings that tablelog reads or sets

What is set is set for one query, write or command of tablelog, and the session keeps its own value.

| key | what it is for |
|---|---|
"""

_UNSUPPORTED = """
## Settings of Delta without effect

A session that sets one of these, or any other key below `spark.databricks.delta.` and `spark.tablelog.` that this page
doesn't have, is warned once.

| key | why |
|---|---|
"""


def page() -> str:
    """The whole page, in Markdown."""
    own: list[Setting[object] | Family] = [*declarations.SETTINGS.values(), *declarations.FAMILIES]
    spark: list[Setting[object] | Family] = [*spark_own.SETTINGS.values(), spark_own.HADOOP]
    return "".join(
        (
            _HEAD,
            "\n## Settings of Delta and of tablelog\n\n| key | values | default | what it does |\n|---|---|---|---|\n",
            *_rows((_key(one), _values(one), _default(one), one.help) for one in _sorted(own)),
            _OF_SPARK,
            *_rows((_key(one), one.help) for one in _sorted(spark)),
            _UNSUPPORTED,
            *_rows((f"`{one.key}`", one.why) for one in unsupported.UNSUPPORTED.values()),
        )
    )


def _sorted(settings: Iterable[Setting[object] | Family]) -> list[Setting[object] | Family]:
    return sorted(settings, key=lambda one: _key(one).lower())


def _rows(rows: Iterable[tuple[str, ...]]) -> Iterable[str]:
    return (f"| {' | '.join(cells)} |\n" for cells in rows)


def _key(one: Setting[object] | Family) -> str:
    return f"`{one.prefix}{one.rest}`" if isinstance(one, Family) else f"`{one.key}`"


def _values(one: Setting[object] | Family) -> str:
    return "" if isinstance(one, Family) else one.values.allowed


def _default(one: Setting[object] | Family) -> str:
    if isinstance(one, Family):
        return ""
    if one.shown_default:
        return one.shown_default
    match one.default:
        case None | "":
            return "none"
        case bool():
            return str(one.default).lower()
        case 0 if one.unit == "bytes":
            return "0 bytes"
        case int() if one.unit == "bytes":
            size, name = next(unit for unit in _SIZES if one.default and one.default % unit[0] == 0)
            return f"{one.default // size:,} {name}"
        case int():
            return f"{one.default:,} {one.unit}".strip()
        case _:
            return f"{one.default}"
