"""The targets, by name."""

from fuzz.target import Target

from . import checkpoints, commits, names, others, schemas, sql, streams, summaries, tables, values, vectors

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (commits, tables, checkpoints, summaries, vectors, names, values, schemas, sql, streams, others)
    for target in module.TARGETS
}
