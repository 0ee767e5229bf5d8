"""The sections about the past of the table: its growth, and its operations."""

from collections import Counter
from collections.abc import Callable, Sequence

from ..pages import escaped
from ..units import size
from . import charts
from .facts import Commit, Point, TableFacts
from .parts import Html, badge, folded, legend, section, table
from .text import clock, count, cut, date, duration, number, short, time

_MOST_POINTS = 120
_MOST_LANES = 8
_COLUMNS = 60
_SHOWN = 50


def growth(facts: TableFacts) -> str:
    """Rows, bytes and files of each version."""
    points = thinned(facts.growth, _MOST_POINTS)
    first, last = facts.growth[0], facts.growth[-1]
    if len(points) == 1:
        return section(
            "growth", "Growth", "The numbers of only one version are known: the log has no commit before it."
        )
    summary = (
        f"From version {first.version} of {date(first.time_ms)} to version {last.version} of {date(last.time_ms)}."
    )
    if first.version > facts.log.oldest:
        summary += f" The versions from {facts.log.oldest} on can be read too, but weren't read for this report."
    panels = "".join(
        (
            _panel("Rows", "s1", points, [point.rows for point in points], short, number),
            _panel("Size", "s2", points, [point.size for point in points], size, size),
            _panel("Files", "s3", points, [point.files for point in points], short, number),
        )
    )
    rows = [
        (str(p.version), time(p.time_ms), number(p.rows), size(p.size), number(p.files))
        for p in reversed(thinned(facts.growth, _SHOWN))
    ]
    listed = table("The table at its versions, newest first", ("Version", "Time", "Rows#", "Size#", "Files#"), rows)
    return section(
        "growth", "Growth", summary, f'<div class="panels">\n{panels}</div>\n', folded("The numbers as a table", listed)
    )


def _panel(
    name: str,
    colour: str,
    points: Sequence[Point],
    values: Sequence[int | None],
    short_text: Callable[[float | None], str],
    full_text: Callable[[float | None], str],
) -> str:
    marks = [
        charts.Mark(value, f"Version {point.version}, {time(point.time_ms)}: {full_text(value)}")
        for point, value in zip(points, values, strict=True)
    ]
    top = short_text(max((value for value in values if value is not None), default=None))
    now = short_text(values[-1])
    first, last = points[0].version, points[-1].version
    label = f"{name} at each version, from version {first} to {last}; now {now}. Arrow keys move."
    return (
        f'<figure class="panel {colour}">\n<figcaption><strong>{name}</strong> <span>{now}</span></figcaption>\n'
        f'<p class="axis top">{top}</p>\n'
        f"{charts.line(label, marks, colour, (f'version {first}', str(last)))}</figure>\n"
    )


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """At most so many of the points, evenly chosen, with the first and the last."""
    if len(points) <= most:
        return list(points)
    return [points[i * (len(points) - 1) // (most - 1)] for i in range(most)]


def operations(facts: TableFacts) -> str:
    """The commits on a time line, and by operation."""
    commits = facts.commits
    if not commits:
        return section("operations", "Operations", "The log has no commit: only a checkpoint remains.")
    late = [commit for commit in commits if commit.overtaken_by]
    span = commits[-1].time_ms - commits[0].time_ms
    summary = f"{count(len(commits), 'commit')} in {duration(span)}" if span > 0 else count(len(commits), "commit")
    if commits[0].version > min(facts.log.oldest, commits[0].version):
        summary += f", the newest of {number(facts.version - facts.log.oldest + 1)}"
    if late:
        most = max(commit.overtaken_by or 0 for commit in late)
        summary += (
            f". {count(len(late), 'commit')} had to be tried again, because other writers committed first: at most "
            f"{count(most, 'commit')}, one after the other"
        )
    elif any(commit.overtaken_by is not None for commit in commits):
        summary += ". No commit had to be tried again because of another writer"
    return section(
        "operations",
        "Operations",
        f"{summary}. An attempt that ended in a conflict leaves no trace in the log.",
        _time_line(commits),
        table(
            "The operations, most frequent first",
            ("Operation", "Commits#", "Files added#", "Files removed#", "Written#", "Overtaken#", "Last"),
            _by_operation(commits),
            "stacked",
        ),
        folded(f"The last {count(min(len(commits), _SHOWN), 'commit')}", _listed(commits)),
    )


def _by_operation(commits: Sequence[Commit]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, _ in Counter(commit.operation for commit in commits).most_common():
        some = [commit for commit in commits if commit.operation == name]
        rows.append(
            (
                name,
                number(len(some)),
                number(sum(commit.added for commit in some)),
                number(sum(commit.removed for commit in some)),
                size(sum(commit.added_size for commit in some)),
                number(sum(bool(commit.overtaken_by) for commit in some)),
                time(some[-1].time_ms),
            )
        )
    return rows


def _listed(commits: Sequence[Commit]) -> str:
    rows = [
        (
            str(commit.version),
            time(commit.time_ms),
            commit.operation,
            f"+{commit.added:,} -{commit.removed:,}",
            size(commit.added_size),
            "unknown" if commit.overtaken_by is None else number(commit.overtaken_by),
            Html(badge("open", "↻", "tried again")) if commit.overtaken_by else "",
            cut(commit.writer, 60),
        )
        for commit in reversed(commits[-_SHOWN:])
    ]
    columns = ("Version", "Time", "Operation", "Files#", "Written#", "Overtaken by#", "Result", "Writer")
    return table("The newest commits", columns, rows)


def _time_line(commits: Sequence[Commit]) -> str:
    frequent = [name for name, _ in Counter(commit.operation for commit in commits).most_common()]
    names = frequent if len(frequent) <= _MOST_LANES else [*frequent[: _MOST_LANES - 1], "other"]
    lane = {name: min(i, len(names) - 1) for i, name in enumerate(frequent)}
    start, span = commits[0].time_ms, max(commits[-1].time_ms - commits[0].time_ms, 1)
    groups: dict[tuple[int, int], list[Commit]] = {}
    for commit in commits:
        column = min(max((commit.time_ms - start) * _COLUMNS // span, 0), _COLUMNS - 1)
        groups.setdefault((column, lane[commit.operation]), []).append(commit)
    most = max(map(len, groups.values()))
    dots = []
    for (_, row), some in sorted(groups.items()):
        late = sum(bool(commit.overtaken_by) for commit in some)
        first, last = some[0], some[-1]
        when = f"{date(first.time_ms)} {clock(first.time_ms)}"
        if len(some) > 1:
            when += (
                f" to {clock(last.time_ms)}"
                if date(first.time_ms) == date(last.time_ms)
                else f" to {date(last.time_ms)}"
            )
        versions = f"version {first.version}" if len(some) == 1 else f"versions {first.version} to {last.version}"
        text = f"{names[row]}: {count(len(some), 'commit')}, {versions}, {when}"
        text += f"; {late} tried again" if late else ""
        radius = 4 + 7 * ((len(some) / most) ** 0.5 if most > 1 else 0)
        x = sum(commit.time_ms - start for commit in some) / len(some) / span
        dots.append(charts.Dot(x, row, radius, "late" if late else "s1", text))
    label = f"{count(len(commits), 'commit')} on a time line, in {count(len(names), 'lane')}. Arrow keys move."
    lanes = "".join(f"<li>{escaped(cut(name, 40))}</li>" for name in names)
    keys = legend((("s1", "commits"), ("late", "commits that were tried again")))
    ends = time(start), time(commits[-1].time_ms)
    return (
        f'<figure class="timeline"><ul class="lane-names" aria-hidden="true" style="line-height:{charts.LANE}px">'
        f"{lanes}</ul>\n<div>{charts.lanes(label, dots, len(names), ends)}</div></figure>\n{keys}"
    )
