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
            *_rows((_key(setting), _values(setting), _default(setting), setting.help) for setting in _sorted(own)),
            _OF_SPARK,
            *_rows((_key(setting), setting.help) for setting in _sorted(spark)),
            _UNSUPPORTED,
            *_rows((f"`{refused.key}`", refused.why) for refused in unsupported.UNSUPPORTED.values()),
        )
    )


def _sorted(settings: Iterable[Setting[object] | Family]) -> list[Setting[object] | Family]:
    return sorted(settings, key=lambda setting: _key(setting).lower())


def _rows(rows: Iterable[tuple[str, ...]]) -> Iterable[str]:
    return (f"| {' | '.join(cells)} |\n" for cells in rows)


def _key(setting: Setting[object] | Family) -> str:
    return f"`{setting.prefix}{setting.rest}`" if isinstance(setting, Family) else f"`{setting.key}`"


def _values(setting: Setting[object] | Family) -> str:
    return "" if isinstance(setting, Family) else setting.values.allowed


def _default(setting: Setting[object] | Family) -> str:
    if isinstance(setting, Family):
        return ""
    if setting.shown_default:
        return setting.shown_default
    match setting.default:
        case None | "":
            return "none"
        case bool():
            return str(setting.default).lower()
        case 0 if setting.unit == "bytes":
            return "0 bytes"
        case int() if setting.unit == "bytes":
            size, name = next(unit for unit in _SIZES if setting.default and setting.default % unit[0] == 0)
            return f"{setting.default // size:,} {name}"
        case int():
            return f"{setting.default:,} {setting.unit}".strip()
        case _:
            return f"{setting.default}"
