"""The columns that commands add to the rows of a table while they work on them."""

from collections.abc import Iterable
from dataclasses import dataclass, fields

from ...engine.sql.hidden_names import free_names


@dataclass(frozen=True)
class HiddenNames:
    """The names of these columns; `beside` gives names that no column of a table or a source has.

    `file_number` and `row_index` say where a row lies. UPDATE: `matches` says whether a row changes, `after` which
    image of it a row of the change feed is. MERGE: `source_row` is the number of a row of the source, `matched` the
    same of a row that matches, `present` whether there is one, `clause` the number of the clause that takes a row.
    """

    file_number: str = "__tablelog_file"
    row_index: str = "__tablelog_row"
    matches: str = "__tablelog_matches"
    after: str = "__tablelog_after"
    source_row: str = "__tablelog_source_row"
    matched: str = "__tablelog_matched"
    present: str = "__tablelog_present"
    clause: str = "__tablelog_clause"

    @classmethod
    def beside(cls, columns: Iterable[str]) -> "HiddenNames":
        """The names for frames that have these columns."""
        wanted = [str(f.default) for f in fields(cls)]
        return cls(*free_names(wanted, columns))
