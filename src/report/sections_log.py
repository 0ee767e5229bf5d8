"""The sections about the log, and about what the table is: features and properties."""

from ..core.protocol.properties import PROPERTIES
from ..units import size
from .facts import TableFacts
from .parts import Html, badge, folded, section, table, tile, tiles
from .text import count, duration, number

_FEATURES_OF_PROPERTIES = "delta."


def log(facts: TableFacts) -> str:
    """The checkpoints and the other files of the log, and its problems."""
    of = facts.log
    newest = f"version {of.checkpoints[-1]}" if of.checkpoints else "none"
    late = of.since_checkpoint > 2 * of.checkpoint_interval
    if of.problems is None:
        problems = '<p class="note">The log is large, so that its files weren\'t compared with each other. '
        problems += "<code>DeltaLog.for_path(...).health()</code> does that.</p>\n"
        found = "Its files weren't checked"
    elif of.problems:
        rows = [
            (
                Html(
                    badge(
                        "fail" if p.severity == "error" else "open", "✗" if p.severity == "error" else "!", p.severity
                    )
                ),
                p.message,
                ", ".join(p.files[:5]),
            )
            for p in of.problems
        ]
        problems = table("Problems of the log", ("Severity", "Problem", "Files"), rows, "stacked")
        found = f"A check of its files found {count(len(of.problems), 'problem')}"
    else:
        problems = f"<p>{badge('pass', '✓', 'healthy')} All files of the log agree with each other.</p>\n"
        found = "A check of all its files found no problem"
    return section(
        "log",
        "Checkpoints and log",
        f"{found}. A reader that opens the table reads "
        + (f"the checkpoint of {newest} and {count(of.since_checkpoint, 'commit')}." if of.checkpoints else
           f"{count(of.since_checkpoint, 'commit')}; there is no checkpoint."),
        problems,
        tiles(
            (
                tile("Versions", f"{of.oldest} to {facts.version}", f"kept for {duration(of.retention_ms)}"),
                tile("Newest checkpoint", newest, f"one after each {count(of.checkpoint_interval, 'commit')}"),
                tile("Commits since then", number(of.since_checkpoint), "too many" if late else "as configured"),
                tile("Size of the log", size(of.size), f"{size(of.checkpoint_size)} in checkpoints"),
                tile("Commits", number(of.commits)),
                tile("Checkpoints", number(len(of.checkpoints))),
                tile("Version checksums", number(of.checksums)),
                tile("Log compactions", number(of.compactions)),
            )
        ),
    )  # fmt: skip


def features(facts: TableFacts) -> str:
    """The protocol, the features and the properties."""
    rows = [
        (
            feature.name,
            Html(badge("pass", "✓", "in use")) if feature.active else "not in use",
            feature.needed_by,
            "yes" if feature.supported else Html(badge("fail", "✗", "no")),
        )
        for feature in facts.features
    ]
    listed = (
        table("Table features", ("Feature", "State", "Needed by", "tablelog reads and writes it"), rows, "stacked")
        if rows
        else "<p>The table needs no feature.</p>\n"
    )
    shown = [(key, value, default(key)) for key, value in facts.properties]
    properties = (
        table("Table properties", ("Property", "Value", "Default"), shown, "stacked")
        if shown
        else "<p>No property is set: each has its default.</p>\n"
    )
    content = (
        properties if len(shown) <= 12 else folded(f"The {count(len(shown), 'property', 'properties')}", properties)
    )
    reader, writer = facts.protocol
    return section(
        "features",
        "Features and properties",
        f"Readers need protocol version {reader}, writers {writer}. The table has "
        f"{count(facts.num_columns, 'column')}, {count(len(rows), 'feature')} and "
        f"{count(len(shown), 'property', 'properties')}.",
        listed,
        content,
    )


def default(key: str) -> str:
    """The default of a property, as text."""
    name = key[len(_FEATURES_OF_PROPERTIES) :] if key.lower().startswith(_FEATURES_OF_PROPERTIES) else ""
    known = PROPERTIES.get(name.lower())
    return "" if known is None else known.default or "not set"
