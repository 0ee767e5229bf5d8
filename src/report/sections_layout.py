"""The sections about the data files: sizes, partitions, debt, skipping, deletion vectors."""

from ..units import size
from .charts import bar
from .facts import Partition, TableFacts
from .layout import HEAVY
from .parts import Html, html_of, legend, section, table, tile, tiles
from .text import count, cut, duration, number, percent, time

_SHARES = ("up to 5 %", "5 to 10 %", "10 to 25 %", "25 to 50 %", "more than 50 %")


def files(facts: TableFacts) -> str:
    """The sizes of the files against the target."""
    of = facts.files
    if not of.count:
        return section("files", "File sizes", "The table has no files.")
    classes = [c for c in of.classes if c.upper is None or c.upper > _first(facts)]
    last = max((i for i, c in enumerate(classes) if c.files), default=0)
    target = next((i for i, c in enumerate(classes) if c.upper is None or c.lower <= of.target < c.upper), 0)
    shown = classes[: max(last, target) + 1]
    most = max(c.files for c in shown)
    rows = []
    for c in shown:
        name = f"{size(c.lower)} and more" if c.upper is None else f"{size(c.lower)} to {size(c.upper)}"
        if c.lower == 0 and c.upper is not None:
            name = f"less than {size(c.upper)}"
        is_target = c is shown[target]
        colour = "s4" if c.upper is not None and c.upper <= of.small else "s1"
        label = f"{name}<span>target: {size(of.target)}</span>" if is_target else name
        rows.append((Html(label), Html(bar([(c.files / most, colour)])), number(c.files), size(c.size)))
    return section(
        "files",
        "File sizes",
        f"Half of the {count(of.count, 'file')} have at most {size(of.median)}; the mean is "
        f"{size(of.size / of.count)}. OPTIMIZE aims at {size(of.target)}, and would leave {count(of.after, 'file')}.",
        table("The files by size", ("Size of a file", "", "Files#", "Bytes#"), rows, "bars"),
        legend((("s4", f"small: less than {size(of.small)}"), ("s1", "not small"))),
    )


def _first(facts: TableFacts) -> int:
    """The lower bound of the first class of sizes that has files."""
    return min((c.lower for c in facts.files.classes if c.files), default=0)


def partitions(facts: TableFacts) -> str:
    """The partitions by size, and those with most small files."""
    of = facts.partitions
    if not of.columns:
        return section("partitions", "Partitions", "The table isn't partitioned.")
    if not of.largest:
        return section("partitions", "Partitions", f"The table is partitioned by {', '.join(of.columns)}, and empty.")
    largest = of.largest[0].size
    skew = f"{number(largest / of.median)} times the median" if of.median else "the median is empty"
    mean = facts.files.size / max(of.count, 1)
    rows = [_row(p, largest) for p in of.largest]
    content = [
        table(
            f"The {count(len(rows), 'largest partition')} of {number(of.count)}",
            ("Partition", "", "Size#", "Files#", "Small files#"),
            rows,
            "bars",
        ),
        legend((("s1", "in larger files"), ("s4", "in small files"))),
    ]
    if of.fragmented:
        content.append(
            table(
                "The partitions where OPTIMIZE removes most files",
                ("Partition", "", "Files#", "After OPTIMIZE#", "Size#"),
                [
                    (
                        label(p),
                        Html(bar([(p.files / of.fragmented[0].files, "s4")])),
                        number(p.files),
                        number(p.after),
                        size(p.size),
                    )
                    for p in of.fragmented[:8]
                ],
                "bars",
            )
        )
    return section(
        "partitions",
        "Partitions",
        f"{count(of.count, 'partition')} by {', '.join(of.columns)}. The largest has {size(largest)}: {skew}, "
        f"{size(of.median)}. The mean is {size(mean)}.",
        *content,
    )


def _row(partition: Partition, largest: int) -> tuple[str | Html, ...]:
    share = partition.size / max(largest, 1)
    small = partition.small_size / max(largest, 1)
    return (
        label(partition),
        Html(bar([(share - small, "s1"), (small, "s4")])),
        size(partition.size),
        number(partition.files),
        number(partition.small_files),
    )


def label(partition: Partition) -> str:
    """The values of a partition as text."""
    return ", ".join("NULL" if value is None else cut(value, 60) or "''" for _, value in partition.values)


def debt(facts: TableFacts) -> str:
    """Bytes that are stored or read without need."""
    of, removed = facts.files, facts.tombstones
    kept = removed.size - removed.expired_size
    whole = max(of.size + removed.size, 1)
    parts = (
        ("s1", "live", of.size - of.small_size),
        ("s4", "live, in small files", of.small_size),
        ("s2", f"removed, kept for {duration(removed.retention_ms)}", kept),
        ("late", "removed, expired: VACUUM may delete it", removed.expired_size),
    )
    chart = f'<div class="stack">{bar([(value / whole, colour) for colour, _, value in parts])}</div>\n'
    rows = [
        (Html(f'<span class="key {colour}" aria-hidden="true"></span>{name}'), size(value), percent(value / whole))
        for colour, name, value in parts
    ]
    last = (
        f"The last VACUUM in the log began at {time(removed.vacuum_ms)}."
        if removed.vacuum_ms is not None
        else "The log shows no VACUUM."
    )
    return section(
        "debt",
        "Small files and removed files",
        f"Storage holds about {size(whole)} for {size(of.size)} of live files. {last} Files of failed writes aren't "
        "counted: only a listing shows them.",
        chart,
        table("What the bytes are", ("State", "Bytes#", "Share#"), rows),
        tiles(
            (
                tile(
                    "Small files", number(of.small_files), f"{percent(of.small_files / max(of.count, 1))} of all files"
                ),
                tile("Files that OPTIMIZE removes", number(of.count - of.after), f"{number(of.after)} remain"),
                tile("Removed files", number(removed.files), size(removed.size)),
                tile("Expired", number(removed.expired_files), size(removed.expired_size)),
            )
        ),
    )


def skipping(facts: TableFacts) -> str:
    """How well files are skipped by each column."""
    of, total = facts.skipping, facts.files.count
    if not of.columns or not total:
        return section("skipping", "Data skipping", "No column has statistics by which files could be skipped.")
    used = dict(of.used)
    rows = []
    for column in of.columns:
        share = column.lookup / total
        colour = "s3" if share <= 0.1 else "s1" if share <= 0.5 else "late"
        kind = f"{column.type}, partition column" if column.is_partition else column.type
        rows.append(
            (
                Html(f"{html_of(cut(column.name, 80))}<span>{html_of(kind)}</span>"),
                Html(bar([(share, colour)])),
                f"{number(max(round(column.lookup, 1), 1))} of {number(total)}",
                percent(share),
                percent(column.known),
                number(used.get(column.name, 0)),
            )
        )
    best = min(of.columns, key=lambda column: column.lookup)
    clustered = f" The table is clustered by {', '.join(of.clustering)}." if of.clustering else ""
    left_out = f" {count(of.left_out, 'more column')} with statistics aren't shown." if of.left_out else ""
    sampled = f" Computed from {number(of.sampled)} evenly chosen files." if of.sampled < total else ""
    return section(
        "skipping",
        "Data skipping",
        f"A search for one value of {cut(best.name, 60)} reads {percent(best.lookup / total)} of the files, the fewest "
        f"of all columns.{clustered}{left_out}{sampled}",
        table(
            "Files that a search for one value reads on average",
            ("Column", "", "Files#", "Share#", "With statistics#", "In conditions#"),
            rows,
            "bars",
        ),
        legend((("s3", "up to 10 %: skips well"), ("s1", "up to 50 %"), ("late", "more than 50 %: hardly skips"))),
    )


def vectors(facts: TableFacts) -> str:
    """The load of deletion vectors."""
    of, total = facts.vectors, facts.files
    if not of.files:
        return section("vectors", "Deletion vectors", "No file has a deletion vector: readers drop no rows.")
    most = max(of.shares)
    rows = [
        (name, Html(bar([(files / most if most else 0, "late" if i else "s1")])), number(files))
        for i, (name, files) in enumerate(zip(_SHARES, of.shares, strict=True))
    ]
    all_rows = None if total.rows is None else total.rows + of.rows
    share = f", {percent(of.rows / all_rows)} of all" if all_rows else ""
    return section(
        "vectors",
        "Deletion vectors",
        f"{count(of.files, 'file')} of {number(total.count)} have a deletion vector. They delete {number(of.rows)} "
        f"rows{share}. OPTIMIZE rewrites a file if more than {percent(HEAVY)} of its rows are deleted: "
        f"{count(of.heavy_files, 'file')} here, {size(of.heavy_size)}.",
        table("The files by the share of their rows that is deleted", ("Deleted rows", "", "Files#"), rows, "bars"),
    )
