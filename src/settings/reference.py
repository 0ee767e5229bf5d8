"""Generates docs/settings.md, the reference page of all settings, from their declarations."""

from collections.abc import Iterable

from . import declarations, spark_own, unsupported
from .setting import Family, Setting

_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1, "bytes"))

_HEAD = """\
# Settings

Settings are keys of the Spark session's configuration. Set them with `spark.conf.set`, or with `--conf` at the start:

```python
spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
```

`DeltaLog.for_path(path, conf={...})` takes the settings of the log and of stores. An invalid value raises
`InvalidArgumentError`, which names the key, the value and the allowed values; for the settings of stores it is
`LogStoreConfigurationError`. Table properties aren't settings: see [features](guide/features.md).

(This page is generated from the declarations in `src/settings`: `python -m tablelog.settings > docs/settings.md`.)
"""

_OF_SPARK = """
## Spark's own settings that tablelog reads or sets

Where tablelog sets a value, it does so for one query, write or command. The session's own value doesn't change.

| key | use |
|---|---|
"""

_UNSUPPORTED = """
## Settings of Delta without effect

A session that sets one of these keys gets one warning. So does a session that sets a key with the prefix
`spark.databricks.delta.` or `spark.tablelog.` that isn't on this page.

| key | reason |
|---|---|
"""


def page() -> str:
    """The whole page, in Markdown."""
    own: list[Setting[object] | Family] = [*declarations.SETTINGS.values(), *declarations.FAMILIES]
    spark: list[Setting[object] | Family] = [*spark_own.SETTINGS.values(), spark_own.HADOOP]
    return "".join(
        (
            _HEAD,
            "\n## Settings of Delta and of tablelog\n\n| key | values | default | effect |\n|---|---|---|---|\n",
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
