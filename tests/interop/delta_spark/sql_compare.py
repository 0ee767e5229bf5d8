"""What two engines did with the same statements, side by side: without times, sizes, and names that are random."""

import json
import re
from typing import Any, NamedTuple

from .sql_grammar import Statement

# Columns of answers, and rows of DESCRIBE EXTENDED, that are different with each run.
_PASSING = {
    "timestamp", "userId", "userName", "job", "notebook", "clusterId", "engineInfo", "operationMetrics", "id",
    "createdAt", "lastModified", "sizeInBytes", "metrics",
    "source_table_size", "removed_files_size", "copied_files_size", "table_size_after_restore",
    "restored_files_size",
}  # fmt: skip
_PASSING_ROWS = {"Created Time", "Last Access", "Created By", "Owner", "Statistics"}
_RANDOM = {f"delta.rowTracking.materializedRow{name}ColumnName" for name in ("Id", "CommitVersion")}
_METADATA = ("DESCRIBE HISTORY", "DESCRIBE DETAIL", "OPTIMIZE", "REORG", "RESTORE", "CLONE")
_ROWS = {
    "numOutputRows", "numDeletedRows", "numUpdatedRows", "numTargetRowsInserted", "numTargetRowsUpdated",
    "numTargetRowsDeleted", "numSourceRows", "numTargetRowsMatchedUpdated", "numTargetRowsNotMatchedBySourceUpdated",
    "numTargetRowsMatchedDeleted", "numTargetRowsNotMatchedBySourceDeleted",
}  # fmt: skip


_UNCHANGED = {"unchanged": True}
DEFAULT = "CURRENT_DEFAULT"
"""The metadata of a column with a default value, which only delta-spark shows in the schema of a DataFrame."""


class Difference(NamedTuple):
    """`what` names the part of the outcome: its answer, or a part of a table's state."""

    number: int
    statement: Statement
    what: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return (
            f"{self.number}. [{self.statement.kind}] {self.statement.text}\n   {self.what}\n"
            f"      ours:   {_short(self.ours)}\n      theirs: {_short(self.theirs)}"
        )


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) < 1500 else text[:1500] + " ..."


def differences(
    statements: list[Statement], ours: list[Any], theirs: list[Any], roots: tuple[str, str]
) -> list[Difference]:
    """All differences, in the order of the statements; one that stays in a table is there once."""
    found = []
    known: dict[tuple[str, str], Any] = {}
    for number, (statement, *outcomes) in enumerate(zip(statements, ours, theirs, strict=True)):
        left, right = (_without_root(outcome, root) for outcome, root in zip(outcomes, roots, strict=True))
        pair = (_answer(statement, left), _answer(statement, right))
        if pair[0] != pair[1]:
            found.append(Difference(number, statement, "answer", *pair))
        for table in {**left["tables"], **right["tables"]}:
            states = [_state(one["tables"].get(table, _UNCHANGED)) for one in (left, right)]
            if _UNCHANGED in states:
                states = [{"commit": one.get("commits")} for one in states]
            for what in states[0] | states[1]:
                pair = (states[0].get(what), states[1].get(what))
                if pair[0] != pair[1] and known.get((table, what)) != pair:
                    found.append(Difference(number, statement, what, *pair))
                known[table, what] = pair
    return found


def _without_root(outcome: Any, root: str) -> Any:
    text = json.dumps(outcome)
    text = re.sub(rf"(file:(//)?)?{re.escape(root)}", "ROOT", text)
    return json.loads(re.sub(r"col-[0-9a-f]{8}-[0-9a-f-]{27}", "col-X", text))


def _answer(statement: Statement, outcome: Any) -> Any:
    if "error" in outcome:
        return {"error": outcome["error"] or f"{outcome['class']}: {outcome['message'][:150]}"}
    columns, rows = outcome["columns"], outcome["rows"]
    kind = statement.kind
    if kind.startswith("VACUUM") and "DRY RUN" in kind:
        rows = len(rows)
    elif any(word in kind for word in _METADATA):
        kept = [number for number, (name, _) in enumerate(columns) if name not in _PASSING]
        columns = [columns[number] for number in kept]
        rows = [[_plain(row[number]) for number in kept] for row in rows]
        rows.sort(key=json.dumps)
    elif kind.startswith("DESCRIBE"):
        rows = [row for row in rows if row[0] not in _PASSING_ROWS]
    return {"columns": columns, "rows": rows}


def _state(state: Any) -> dict[str, Any]:
    if state is None or state == _UNCHANGED:
        return state or {"commit": "no table any more"}
    read, metadata, protocol = state["read"], state["metadata"], state["protocol"]
    return {
        "rows": read.get("rows", read.get("error")),
        "schema": schema_without(read.get("schema"), DEFAULT),
        "logged schema": schema_without(json.loads(metadata["schemaString"]), "delta.columnMapping.physicalName"),
        "partitioned by": metadata["partitionColumns"],
        "properties": metadata["configuration"],
        "comment": metadata.get("description"),
        "protocol": {key: sorted(value) if isinstance(value, list) else value for key, value in protocol.items()},
        "domains": {name: _plain(value) for name, value in state["domains"].items()},
        "commits": [_commit(commit) for commit in state["commits"]],
    }


def schema_without(schema: Any, *left_out: str) -> Any:
    """A schema without some of the metadata of its columns, such as the random names of columns in files."""
    if isinstance(schema, dict):
        return {key: schema_without(value, *left_out) for key, value in schema.items() if key not in left_out}
    return [schema_without(one, *left_out) for one in schema] if isinstance(schema, list) else schema


def _commit(info: dict[str, Any]) -> dict[str, Any]:
    """A commit as the history shows it. How many rows MERGE copies depends on the files that it rewrites."""
    counts = {key: value for key, value in (info["operationMetrics"] or {}).items() if key in _ROWS}
    if info["operation"] == "MERGE":
        counts.pop("numOutputRows", None)
    return {
        "operation": info["operation"],
        "parameters": {key: _plain(value) for key, value in info["operationParameters"].items() if value is not None},
        "row counts": counts,
        "blind": info["isBlindAppend"],
        "level": info["isolationLevel"],
    }


def _plain(value: Any) -> Any:
    """A value as both engines spell it.

    Left out are the numbers of expressions, the casts and suffixes of constants, marks of names that weren't resolved
    yet, the random names of row tracking, and the spaces and order of JSON.
    """
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if one is not None and key not in _RANDOM}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, str):
        return value
    try:
        found = json.loads(value)
    except ValueError:
        text = re.sub(r"#\d+L?", "", value)
        text = re.sub(r"cast\('?(-?\d+)'? as \w+\)", r"\1", text, flags=re.IGNORECASE)
        text = re.sub(r"\b(\d+)L\b", r"\1", text)
        return re.sub(r"(?<=\()'(\w+)(?= )", r"\1", text)
    if isinstance(found, dict):
        found.pop("domainName", None)
    return _plain(found)
