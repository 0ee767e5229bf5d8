"""The report as one self-contained HTML page."""

from collections.abc import Sequence

from ..pages import document, escaped
from ..units import size
from . import sections_history, sections_layout, sections_log
from .advice import Advice, Severity
from .facts import TableFacts
from .page_style import STYLE
from .parts import badge, tile, tiles
from .script import SCRIPT
from .text import count, cut, duration, number, short, time

_SECTIONS = {
    "growth": ("Growth", sections_history.growth),
    "operations": ("Operations", sections_history.operations),
    "files": ("File sizes", sections_layout.files),
    "partitions": ("Partitions", sections_layout.partitions),
    "debt": ("Small and removed files", sections_layout.debt),
    "skipping": ("Data skipping", sections_layout.skipping),
    "vectors": ("Deletion vectors", sections_layout.vectors),
    "log": ("Log", sections_log.log),
    "features": ("Features", sections_log.features),
}
_BADGES = {Severity.ERROR: ("fail", "✗"), Severity.WARNING: ("open", "!"), Severity.NOTE: ("note", "i")}


def to_html(facts: TableFacts, advice: Sequence[Advice]) -> str:
    """The page."""
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, (title, _) in _SECTIONS.items())
    body = (
        f"{_header(facts, advice)}"
        f'<nav aria-label="Sections"><ul><li><a href="#advice">Advice</a></li>{links}</ul></nav>\n'
        f"{_advice(advice)}{''.join(section(facts) for _, section in _SECTIONS.values())}{_footer(facts)}"
    )
    return document(f"{title_of(facts)} - tablelog report", STYLE, body, script=SCRIPT)


def title_of(facts: TableFacts) -> str:
    """The name of the table: the one in its metadata, or the last part of its path."""
    return cut(facts.name or facts.location.rstrip("/").rpartition("/")[2] or facts.location, 120)


def verdict(advice: Sequence[Advice]) -> tuple[str, str, str]:
    """The class, the mark and the text of the result."""
    errors = sum(item.severity is Severity.ERROR for item in advice)
    warnings = sum(item.severity is Severity.WARNING for item in advice)
    if errors:
        return "fail", "✗", "The log is damaged."
    if warnings:
        return "open", "!", f"{count(warnings, 'thing')} to improve."
    return "pass", "✓", "Nothing needs to be done."


def _header(facts: TableFacts, advice: Sequence[Advice]) -> str:
    style, mark, text = verdict(advice)
    of = facts.files
    notes = sum(item.severity is Severity.NOTE for item in advice)
    more = f" {count(notes, 'suggestion')}." if notes else ""
    word = {"fail": "damaged", "open": "improve", "pass": "healthy"}[style]
    description = f'<p class="description">{escaped(cut(facts.description, 400))}</p>\n' if facts.description else ""
    mean = size(of.size / of.count) if of.count else "none"
    items = (
        tile("Rows", short(of.rows), number(of.rows) if of.rows is not None and of.rows > 999 else ""),
        tile("Size", size(of.size), f"{mean} each file" if of.count else ""),
        tile("Files", short(of.count), f"{number(of.small_files)} small"),
        tile("Version", str(facts.version), f"{duration(max(facts.now_ms - facts.time_ms, 0))} old"),
    )
    return (
        f'<header class="{style}">\n<p class="kind">Health of a Delta table</p>\n<h1>{escaped(title_of(facts))}</h1>\n'
        f'<p class="where"><code>{escaped(facts.location)}</code></p>\n{description}'
        f'<p class="verdict">{badge(style, mark, word)} <strong>{text}</strong>{more}</p>\n{tiles(items)}</header>\n'
    )


def _advice(advice: Sequence[Advice]) -> str:
    if not advice:
        content = "<p>The layout, the log and the statistics of the table are as they should be.</p>\n"
    else:
        content = f'<ol class="advice">\n{"".join(map(_item, advice))}</ol>\n'
    head = '<h2 id="advice-title">Advice</h2>'
    return f'<section id="advice" aria-labelledby="advice-title">\n{head}\n{content}</section>\n'


def _item(item: Advice) -> str:
    style, mark = _BADGES[item.severity]
    command = (
        f'<pre tabindex="0" aria-label="Command"><code>{escaped(item.command)}</code></pre>\n' if item.command else ""
    )
    return (
        f'<li class="{style}">\n<h3>{badge(style, mark, item.severity)} {escaped(item.title)}</h3>\n'
        f'<p>{escaped(item.why)} <a href="#{item.section}">Details</a></p>\n{command}'
        f'<p class="gain"><strong>Expected gain:</strong> {escaped(item.gain)}</p>\n</li>\n'
    )


def _footer(facts: TableFacts) -> str:
    return (
        f"<footer><p>Made by tablelog at {time(facts.now_ms)} from the log of version {facts.version}. No data file "
        "was opened. Gains are estimates; sizes are in units of 1024, times in UTC.</p></footer>\n"
    )
