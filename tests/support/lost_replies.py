"""Whole table commits through a proxy that loses replies, on any store that speaks HTTP."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from support.memory_table import QUICK, WRITE, add, create
from tablelog.conformance.harness.proxy import Exchange, Proxy, Reply
from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol.actions import AddFile
from tablelog.core.txn.transaction import Transaction
from tablelog.errors import CommitStateUnknownError
from tablelog.logstore import LogStore

COMMITS = 4


@dataclass
class Loses:
    """What becomes of the conditional requests for commits: `form` decides about the first for each name, or `all`."""

    form: Callable[["Loses", Exchange], Reply | None]
    all: bool = False
    on: bool = False
    lost: int = 0
    late: list[Exchange] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def decide(self, exchange: Exchange) -> Reply | None:
        name = exchange.request.target.partition("?")[0].rpartition("/")[2]
        if not (self.on and exchange.request.conditional and name.endswith(".json")):
            return exchange.forward()
        with self._lock:
            first = name not in self._names
            self._names.add(name)
            if not first:
                self.deliver()
        if not (first or self.all):
            return exchange.forward()
        self.lost += 1
        return self.form(self, exchange)

    def deliver(self) -> None:
        """Let what was held up arrive."""
        while self.late:
            self.late.pop().forward()


def dropped(_: Loses, exchange: Exchange) -> None:
    exchange.forward()


def error_500(_: Loses, exchange: Exchange) -> Reply:
    exchange.forward()
    return Reply(500, {}, b"<Error><Code>InternalError</Code></Error>")


def error_503(_: Loses, exchange: Exchange) -> Reply:
    exchange.forward()
    return Reply(503, {}, b"<Error><Code>ServiceUnavailable</Code></Error>")


def never_sent(_: Loses, _exchange: Exchange) -> None:
    return None


def late(loses: Loses, exchange: Exchange) -> None:
    loses.late.append(exchange)


FORMS = {
    "dropped": Loses(dropped),
    "500": Loses(error_500),
    "503": Loses(error_503),
    "never sent": Loses(never_sent),
    "late": Loses(late),
    "all dropped": Loses(dropped, all=True),
    "all 500": Loses(error_500, all=True),
    "none sent": Loses(never_sent, all=True),
    "all late": Loses(late, all=True),
}
"""What is lost -> how; a test takes a copy by `form(name)`."""


def form(name: str) -> Loses:
    return Loses(FORMS[name].form, FORMS[name].all)


def commit_through(
    loses: Loses, endpoint: str, through: Callable[[str], LogStore], direct: LogStore, root: str
) -> dict[str, int | None]:
    """Make `COMMITS` commits through the proxy, and check that the log holds each once, as its writer was told.

    Gives back the version of each, None where the writer said that it doesn't know.
    """
    create(DeltaLog.for_path(root, store=direct))
    told: dict[str, int | None] = {}
    tokens: dict[str, str] = {}
    with Proxy(endpoint, loses.decide) as proxy:
        store = through(proxy.url)
        store.write(f"{root}/_delta_log/_warm", b"", overwrite=True)
        loses.on = True
        for number in range(COMMITS):
            log = DeltaLog.for_path(root, store=store)
            name = f"f-{number}"
            transaction = Transaction(log, log.snapshot(), patience=QUICK)
            try:
                told[name] = transaction.commit([add(name)], WRITE).version
            except CommitStateUnknownError as error:
                told[name], tokens[name] = None, error.token
        loses.on = False
        loses.deliver()
    holds_once(DeltaLog.for_path(root, store=direct), told, tokens)
    assert loses.lost >= COMMITS
    return told


def holds_once(log: DeltaLog, told: dict[str, int | None], tokens: dict[str, str]) -> None:
    """The log holds each commit once, where its writer was told, or where its token is found, or not at all."""
    newest = log.snapshot().version
    held: dict[str, list[int]] = {}
    for version in range(1, newest + 1):
        data = log.store.read(f"{log.log_path}/{version:020d}.json").decode()
        for name in told:
            if f'"{name}"' in data:
                held.setdefault(name, []).append(version)
    assert newest == sum(len(versions) for versions in held.values())
    for name, version in told.items():
        if version is None:
            found = log.find_commit(tokens[name])
            assert held.get(name, []) == ([] if found is None else [found])
        else:
            assert held[name] == [version]
    files = [file.path for file in log.snapshot().add_files() if isinstance(file, AddFile)]
    assert sorted(files) == sorted(held)
