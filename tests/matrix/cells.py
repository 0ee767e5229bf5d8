"""The cells of the matrix: each is a Python, a Spark and a kind of session.

The whole product has hundreds of cells. These are fewer, and every pair of values is in one of them: each Python with
each Spark, each Spark with each time zone, and so on (`test_matrix.py` checks it). Only classic
sessions have a Hive metastore: on Spark Connect names of tables are refused.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import combinations, product

PYTHONS = ("3.11", "3.12", "3.13")
SPARKS = ("4.1", "4.2", "4.3")
UTC, NEW_YORK, KOLKATA = ZONES = ("UTC", "America/New_York", "Asia/Kolkata")
CLASSIC, CONNECT = MODES = ("classic", "connect")
_DEFAULTS = "Spark's defaults"


@dataclass(frozen=True)
class Cell:
    """One combination. `python` and `spark` are minor versions."""

    python: str
    spark: str
    mode: str = CLASSIC
    zone: str = UTC
    ansi: bool = True
    case_sensitive: bool = False
    hive: bool = False

    @property
    def name(self) -> str:
        """The versions, the mode, and what isn't as in Spark's defaults: `3.12-4.1-connect-New_York-no_ansi`."""
        return "-".join((self.python, self.spark, self.mode, *(text.replace(" ", "_") for text in self.variants)))

    @property
    def variants(self) -> tuple[str, ...]:
        """What of the session differs from Spark's defaults, in words."""
        named = (
            (self.zone.partition("/")[2].replace("_", " "), self.zone != UTC),
            ("no ANSI", not self.ansi),
            ("caseSensitive", self.case_sensitive),
            ("Hive", self.hive),
        )
        return tuple(text for text, differs in named if differs)

    @property
    def session(self) -> str:
        """The kind of session, in words."""
        return f"{'Connect' if self.mode == CONNECT else self.mode}, {', '.join(self.variants) or _DEFAULTS}"

    @property
    def settings(self) -> dict[str, str]:
        """The settings of Spark that make such a session."""
        return {
            "spark.sql.session.timeZone": self.zone,
            "spark.sql.ansi.enabled": str(self.ansi).lower(),
            "spark.sql.caseSensitive": str(self.case_sensitive).lower(),
            "spark.sql.catalogImplementation": "hive" if self.hive else "in-memory",
        }


SMOKE = (
    Cell("3.13", "4.3"),
    Cell("3.12", "4.1", CONNECT, NEW_YORK, ansi=False, case_sensitive=True),
)
"""What CI runs."""

CELLS = (
    *SMOKE,
    Cell("3.12", "4.3", zone=NEW_YORK, ansi=False, hive=True),
    Cell("3.11", "4.3", CONNECT, KOLKATA, case_sensitive=True),
    Cell("3.13", "4.2", CONNECT, NEW_YORK),
    Cell("3.12", "4.2", zone=KOLKATA, hive=True),
    Cell("3.11", "4.2", ansi=False, case_sensitive=True, hive=True),
    Cell("3.13", "4.1", zone=KOLKATA, ansi=False, case_sensitive=True, hive=True),
    Cell("3.12", "4.1", CONNECT),
    Cell("3.11", "4.1", zone=NEW_YORK, ansi=False, hive=True),
)

PREVIEW = "preview"
"""The name by which the newest preview of Spark is selected; it is no cell, for it isn't a supported version."""


def possible() -> Iterator[Cell]:
    """Every combination that the cells are a selection of."""
    flags = (True, False)
    for python, spark, mode, zone, ansi, case_sensitive, hive in product(
        PYTHONS, SPARKS, MODES, ZONES, flags, flags, flags
    ):
        if mode == CLASSIC or not hive:
            yield Cell(python, spark, mode, zone, ansi, case_sensitive, hive)


def pairs(cells: Iterable[Cell]) -> set[tuple[tuple[str, object], tuple[str, object]]]:
    """All pairs of values of two properties that one of the cells has."""
    return {pair for cell in cells for pair in combinations(vars(cell).items(), 2)}


def selected(patterns: Sequence[str]) -> list[Cell]:
    """The cells whose name one of the patterns fits, such as `3.12-*` or `*-Hive`, in their order; all without any."""
    return [cell for cell in CELLS if not patterns or any(fnmatchcase(cell.name, pattern) for pattern in patterns)]
