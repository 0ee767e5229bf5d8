"""What each command does to the rows of a table, as a value that a journal keeps and the model replays."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

Effect: TypeAlias = Mapping[str, Any]
State: TypeAlias = dict[int, tuple[str, int]]
"""id -> (partition, amount)."""


class Row(NamedTuple):
    id: int
    p: str
    amount: int


class ContradictionError(Exception):
    """An effect can't have happened on this state: its writer saw other rows than the log had."""


def insert(rows: Iterable[Row]) -> Effect:
    return {"do": "insert", "rows": [list(row) for row in rows]}


def remove(rows: Iterable[Row]) -> Effect:
    """Remove rows that the writer has read."""
    return {"do": "remove", "rows": [list(row) for row in rows]}


def change(rows: Iterable[Row], by: int) -> Effect:
    """Add `by` to rows that the writer has read."""
    return {"do": "change", "rows": [list(row) for row in rows], "by": by}


def delete_where(p: str, divisor: int, rest: int) -> Effect:
    """DELETE WHERE p = ... AND id % divisor = rest."""
    return {"do": "delete where", "p": p, "divisor": divisor, "rest": rest}


def add_where(p: str, divisor: int, rest: int, by: int) -> Effect:
    """UPDATE SET amount = amount + by WHERE p = ... AND id % divisor = rest."""
    return {"do": "add where", "p": p, "divisor": divisor, "rest": rest, "by": by}


def transfer(source: int, target: int, amount: int) -> Effect:
    """UPDATE of two accounts: their sum stays."""
    return {"do": "transfer", "source": source, "target": target, "amount": amount}


def merge(p: str, rows: Iterable[Row]) -> Effect:
    """MERGE by id: a row that exists gets the amount, another is inserted."""
    return {"do": "merge", "p": p, "rows": [list(row) for row in rows]}


def restore(version: int) -> Effect:
    return {"do": "restore", "version": version}


NOTHING: Effect = {"do": "nothing"}
"""OPTIMIZE, VACUUM and changes of metadata."""


def applied(effect: Effect, state: State, earlier: Mapping[int, State]) -> State:
    """The state after the effect; `earlier` has the states of the versions that are restored."""
    kind = effect["do"]
    if kind == "nothing":
        return state
    if kind == "restore":
        return dict(earlier[effect["version"]])
    after = dict(state)
    if kind in ("insert", "remove", "change"):
        _apply_rows(kind, [Row(*row) for row in effect["rows"]], effect.get("by", 0), after)
    elif kind == "merge":
        for row in (Row(*values) for values in effect["rows"]):
            after[row.id] = (effect["p"], row.amount)
    elif kind == "transfer":
        for number, by in ((effect["source"], -effect["amount"]), (effect["target"], effect["amount"])):
            after[number] = (after[number][0], after[number][1] + by)
    else:
        for number, (p, amount) in state.items():
            if p == effect["p"] and number % effect["divisor"] == effect["rest"]:
                if kind == "delete where":
                    del after[number]
                else:
                    after[number] = (p, amount + effect["by"])
    return after


def _apply_rows(kind: str, rows: list[Row], by: int, after: State) -> None:
    for row in rows:
        there = after.get(row.id)
        if kind == "insert":
            if there is not None:
                raise ContradictionError(f"row {row.id} is inserted, but it was there")
            after[row.id] = (row.p, row.amount)
        elif there != (row.p, row.amount):
            raise ContradictionError(f"the writer read {tuple(row)}, but the log had {there}")
        elif kind == "remove":
            del after[row.id]
        else:
            after[row.id] = (row.p, row.amount + by)


def digest(rows: Iterable[Row]) -> str:
    """A short text that is equal for equal multisets of rows."""
    lines = sorted(f"{row.id} {row.p} {row.amount}\n" for row in rows)
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:24]


def rows_of(state: State) -> list[Row]:
    return [Row(number, p, amount) for number, (p, amount) in state.items()]
