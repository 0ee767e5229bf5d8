"""What is in the log since the version that a command reads, if the command itself has committed meanwhile."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .conflict import Winner

if TYPE_CHECKING:
    from ..table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class EarlierCommits:
    """The commits that a further commit of a command doesn't read again: those of the command, and those before them.

    `snapshot` is the version of the command's last commit. `others` are the commits of other writers since the version
    that the command reads; each commit of the command is checked against them. Its own commits need no check, because
    they change other files.
    """

    snapshot: "Snapshot"
    others: tuple[Winner, ...]
