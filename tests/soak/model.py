"""Which versions a table must have and what each must hold, from the journals; and where the table differs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from soak.effects import ContradictionError, Row, State, applied, digest, rows_of
from soak.journal import Intent

_SHOWN = 5
_COMMITS_OFTEN = ("OPTIMIZE", "VACUUM", "REORG")
"""Commands that may make more than one commit."""


@dataclass(frozen=True)
class LogEntry:
    """A commit as it is in the log: who made it is its `commitInfo.userMetadata`."""

    version: int
    op: str | None
    operation: str


@dataclass(frozen=True)
class Read:
    """A version that somebody read during the soak."""

    version: int
    digest: str
    by: str


def problems(
    intents: Iterable[Intent],
    entries: Sequence[LogEntry],
    reads: Iterable[Read],
    first: Sequence[Row],
    last: Sequence[Row],
) -> list[str]:
    """What is wrong with a table.

    Args:
        intents: The operations on it.
        entries: Its log from outside, in order, beginning with its creation.
        reads: The versions of it that were read.
        first: Its rows at version 0.
        last: Its rows now.
    """  # fmt: skip
    by_op = {intent.op: intent for intent in intents}
    versions = defaultdict(list)
    for entry in entries[1:]:
        versions[entry.op].append(entry.version)
    found = []
    if [entry.version for entry in entries] != list(range(len(entries))):
        found.append("the versions in the log aren't consecutive")
    found += [
        f"version {entry.version} ({entry.operation}) is by nobody: {entry.op}"
        for entry in entries[1:]
        if entry.op not in by_op
    ]
    for intent in by_op.values():
        found += _outcome_problems(intent, versions.get(intent.op, []))
    silent = [one for one in by_op.values() if one.outcome == "acknowledged" and not versions.get(one.op)]
    return found + _Replay(by_op, entries, reads, silent).problems(first, last)


def _outcome_problems(intent: Intent, at: list[int]) -> list[str]:
    what = f"{intent.op} ({intent.kind}, {intent.outcome or 'killed'})"
    if len(at) > 1 and not intent.kind.startswith(_COMMITS_OFTEN):
        return [f"{what} is in the log more than once: {at}"]
    if intent.outcome == "acknowledged" and intent.version is not None and at != [intent.version]:
        return [f"{what} was acknowledged as version {intent.version} and is at {at}"]
    if intent.outcome in ("refused", "failed") and at and not intent.kind.startswith(_COMMITS_OFTEN):
        return [f"{what} is in the log, at {at}"]
    return []


class _Replay:
    """The effects of the log, version after version."""

    def __init__(
        self, by_op: Mapping[str, Intent], entries: Sequence[LogEntry], reads: Iterable[Read], silent: list[Intent]
    ) -> None:
        self._by_op = by_op
        self._entries = entries
        self._reads: dict[int, list[Read]] = defaultdict(list)
        for read in reads:
            self._reads[read.version].append(read)
        self._silent = silent
        """Acknowledged, but not in the log: each must have had nothing to do at some version while it ran."""
        effects = [intent.effect for intent in by_op.values()]
        self._restored = {effect["version"] for effect in effects if effect["do"] == "restore"}
        self._kept: dict[int, State] = {}

    def problems(self, first: Sequence[Row], last: Sequence[Row]) -> list[str]:
        state: State = {row.id: (row.p, row.amount) for row in first}
        found = self._compared(0, state)
        for entry in self._entries[1:]:
            intent = self._by_op.get(entry.op or "")
            if intent is not None:
                try:
                    state = applied(intent.effect, state, self._kept)
                except (ContradictionError, KeyError) as error:
                    found.append(f"version {entry.version}, {intent.op} ({intent.kind}): {error}")
            found += self._compared(entry.version, state)
        newest = len(self._entries) - 1
        found += [f"{read.by} read version {version}, which isn't in the log" for version, reads in self._reads.items()
                  for read in reads if version > newest]  # fmt: skip
        found += [
            f"{one.op} ({one.kind}) was acknowledged between versions {one.before} and {one.after}, and is lost"
            for one in self._silent
        ]
        return found + differences(rows_of(state), last)

    def _compared(self, version: int, state: State) -> list[str]:
        if version in self._restored:
            self._kept[version] = state
        self._silent = [one for one in self._silent if not self._had_nothing_to_do(one, version, state)]
        if version not in self._reads:
            return []
        expected = digest(rows_of(state))
        return [
            f"{read.by} read other rows of version {version} than its log gives"
            for read in self._reads[version]
            if read.digest != expected
        ]

    def _had_nothing_to_do(self, intent: Intent, version: int, state: State) -> bool:
        if version < intent.before or (intent.after is not None and version > intent.after):
            return False
        try:
            return applied(intent.effect, state, self._kept) == state
        except (ContradictionError, KeyError):
            return False


def differences(expected: Iterable[Row], actual: Iterable[Row]) -> list[str]:
    """Rows that are lost, and rows that are there without reason or more than once."""
    expected_rows, actual_rows = Counter(expected), Counter(actual)
    lost, more = expected_rows - actual_rows, actual_rows - expected_rows
    found = []
    for what, rows in (("lost", lost), ("there without reason", more)):
        if rows:
            shown = sorted(tuple(row) for row in rows)[:_SHOWN]
            found.append(f"{sum(rows.values())} rows are {what}, such as {shown}")
    return found
