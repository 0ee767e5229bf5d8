"""`report`: the health of a table as one page."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from .. import local_file
from ..core.deltalog import DeltaLog
from ..errors import InvalidArgumentError
from .advice import Advice
from .advice import advice as advice_for
from .facts import TableFacts
from .gather import gather
from .page import title_of, to_html, verdict

_HEIGHT = 900


@dataclass(frozen=True, slots=True)
class Report:
    """The health of one version of a table. A notebook shows it as a page."""

    facts: TableFacts
    advice: tuple[Advice, ...]

    def to_html(self) -> str:
        """The report as one HTML page that needs no other file and no network."""
        return to_html(self.facts, self.advice)

    def to_json(self) -> str:
        """The version and the advice as JSON, for a program."""
        items = [asdict(item) for item in self.advice]
        return json.dumps({"table": self.facts.location, "version": self.facts.version, "advice": items}, indent=2)

    def save(self, path: str | Path) -> Path:
        """Write the page to a local file; returns its path.

        Raises:
            InvalidArgumentError: The file can't be written.
        """
        target = Path(path)
        local_file.write(target, [self.to_html()])
        return target

    def __repr__(self) -> str:
        return f"Report({title_of(self.facts)!r}, version={self.facts.version}: {verdict(self.advice)[2]})"

    def _repr_html_(self) -> str:
        # A frame keeps the style of the page from the notebook's, and its script away from the notebook.
        return (
            f'<iframe sandbox="allow-scripts" title="{escape(repr(self))}" srcdoc="{escape(self.to_html())}" '
            f'style="width: 100%; height: {_HEIGHT}px; border: 1px solid #8884; border-radius: 6px"></iframe>'
        )


def report(
    table: str | DeltaLog,
    *,
    storage_options: Mapping[str, Any] | None = None,
    conf: Mapping[str, str] | None = None,
    commits: int = 1_000,
    check_log: bool | None = None,
    target_file_size: int | None = None,
) -> Report:
    """Examine a table by its log, without Spark. It changes nothing and opens no data file.

    Args:
        table: A URI, a local path, or a log that is open already.
        storage_options: Options of the storage, with fsspec's names; only with a path.
        conf: Settings with Spark's names; only with a path.
        commits: The most commits to read for the growth and the operations, the newest ones first.
        check_log: Whether to read all files of the log and to compare them; by default only if the log is small.
        target_file_size: The size in bytes that files should have; by default that of OPTIMIZE.

    Returns:
        The report.

    Raises:
        TableNotFoundError: There is no table.
        CorruptLogError: The newest version can't be read.
        InvalidArgumentError: An argument isn't valid.
    """
    if commits < 1:
        raise InvalidArgumentError(f"the number of commits must be positive, but it is {commits}")
    if target_file_size is not None and target_file_size < 1:
        raise InvalidArgumentError(f"the target file size must be positive, but it is {target_file_size}")
    if isinstance(table, DeltaLog):
        if storage_options or conf:
            raise InvalidArgumentError("the log is open already: pass its settings to DeltaLog.for_path")
        log = table
    else:
        log = DeltaLog.for_path(table, storage_options=storage_options, conf=conf)
    facts = gather(log, commits=commits, check_log=check_log, target=target_file_size)
    return Report(facts, advice_for(facts))
