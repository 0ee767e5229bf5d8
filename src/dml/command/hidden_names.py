"""Names of the helper columns that commands add to the rows of a table while they process them."""

from collections.abc import Iterable
from dataclasses import dataclass, fields

from ...engine.sql.hidden_names import free_names


@dataclass(frozen=True)
class HiddenNames:
    """Names of the helper columns; `avoiding` creates names that differ from all columns of the table and the source.

    `file_number` and `row_index` are the location of a row. UPDATE: `matches` is whether a row changes, `after` whether
    a row of the change feed is the postimage. MERGE: `source_row` is the number of a source row, `matched` the number
    of a source row that matches, `present` whether a match exists, `clause` the number of the clause that applies.
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
    def avoiding(cls, columns: Iterable[str]) -> "HiddenNames":
        """Names that differ from all of `columns`."""
        wanted = [str(f.default) for f in fields(cls)]
        return cls(*free_names(wanted, columns))
