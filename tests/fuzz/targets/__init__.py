"""The targets, by name."""

from fuzz.target import Target

from . import checkpoints, commits, dynamodb, iceberg, names, schemas, sql, streams, summaries, tables, values, vectors

_MODULES = (
    *(commits, tables, checkpoints, summaries, vectors, names, values, schemas, sql, streams),
    *(iceberg, dynamodb),
)
TARGETS: dict[str, Target] = {target.name: target for module in _MODULES for target in module.TARGETS}
