"""The report as one self-contained HTML page, for example for the vendor of a store."""

from collections.abc import Iterable, Iterator, Mapping

from ...pages import document
from ...pages import escaped as _text
from .. import words
from ..calibration import CAUGHT, MISSED, Calibration
from ..model import Finding, Verdict
from .page_style import STYLE
from .report import GUARANTEES, Report, worst_of

_CLASSES = {Verdict.PASS: "pass", Verdict.FAIL: "fail", Verdict.NOT_ESTABLISHED: "open"}
_MARKS = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.NOT_ESTABLISHED: "?"}
_HEADLINES = {
    Verdict.PASS: "The store kept every guarantee that was tested.",
    Verdict.FAIL: "This store breaks the contract that a transaction log relies on.",
    Verdict.NOT_ESTABLISHED: "No check failed, but some checks have no result here.",
}
_MEANINGS = {
    Verdict.PASS: "The check ran, and the store kept the guarantee each time. This is evidence and no proof; the "
    "report shows how much was tested.",
    Verdict.FAIL: "The store broke the guarantee at least once. The message and the timeline show how.",
    Verdict.NOT_ESTABLISHED: "The check has no result here, for the reason shown. It means “unknown”, not “passed”.",
}
_MOST_ACTORS = 8


def to_html(report: Report) -> str:
    """The page."""
    title = f"{report.verdict}: {report.what} - tablelog conformance"
    sections = [_not_run(report)] if report.obstacle else [_guarantees(report), _details(report)]
    body = [_header(report), *sections, _calibration(report.calibration), _footer(report)]
    return document(title, STYLE, "".join(part for part in body if part))


def _badge(verdict: Verdict) -> str:
    return f'<span class="badge {_CLASSES[verdict]}"><span aria-hidden="true">{_MARKS[verdict]}</span> {verdict}</span>'


def _header(report: Report) -> str:
    counts = {verdict: report.count(verdict) for verdict in Verdict}
    headline = _HEADLINES[report.verdict]
    if not report.findings:
        headline = "Only the suite itself was tested, on known correct and broken stores."
    elif any(finding.verdict is Verdict.FAIL and finding.check.guarantee for finding in report.findings):
        headline = "A transaction log can lose data on this store."
    facts = {
        "Store": report.declared.get("class"),
        "Location": report.root or None,
        "Declares": _declared(report),
        "Level": report.level.name.lower(),
        "Seed": report.seed,
        "Run": f"{report.started.replace('T', ' ').replace('+00:00', ' UTC')}, {report.seconds:.0f} s",
        "Versions": ", ".join(f"{name} {value}" for name, value in report.versions.items()),
    }
    rows = "".join(
        f"<div><dt>{name}</dt><dd>{_text(value)}</dd></div>\n" for name, value in facts.items() if value is not None
    )
    return (
        f'<header class="{_CLASSES[report.verdict]}">\n<p class="kind">Conformance of a store with the guarantees of a '
        f"transaction log</p>\n<h1>{_text(report.what)}</h1>\n"
        f'<p class="verdict">{_badge(report.verdict)} <strong>{headline}</strong> '
        f"{_text(words.sentence(counts, len(report.findings)).capitalize())}.</p>\n"
        f'<dl class="facts">\n{rows}</dl>\n</header>\n'
    )


def _not_run(report: Report) -> str:
    return (
        '<section aria-labelledby="obstacle">\n<h2 id="obstacle">No check was run</h2>\n'
        f'<p class="message">{_text(report.obstacle)}</p>\n</section>\n'
    )


def _declared(report: Report) -> str | None:
    if "exclusion" not in report.declared:
        return None
    atomic = "atomic overwrite" if report.declared.get("atomic_overwrite") else "no atomic overwrite"
    return f"exclusion: {report.declared['exclusion']}; {atomic}"


def _guarantees(report: Report) -> str:
    rows = []
    for guarantee, (title, meaning) in GUARANTEES.items():
        findings = report.of(guarantee)
        if not findings:
            continue
        verdict = worst_of(finding.verdict for finding in findings)
        rows.append(
            f'<tr><th scope="row"><a href="#g{guarantee}">{_numbered(guarantee, title)}</a>'
            f"<span>{_text(meaning)}</span></th>"
            f"<td>{_badge(verdict)}</td><td>{_why(findings, verdict)}</td></tr>\n"
        )
    if not rows:
        return ""
    return (
        '<section aria-labelledby="guarantees">\n<h2 id="guarantees">The guarantees</h2>\n<table class="guarantees">\n'
        '<thead><tr><th scope="col">Guarantee</th><th scope="col">Verdict</th><th scope="col">Evidence</th></tr>'
        "</thead>\n"
        f"<tbody>\n{''.join(rows)}</tbody>\n</table>\n</section>\n"
    )


def _numbered(guarantee: int, title: str) -> str:
    return f"{guarantee}. {_text(title)}" if guarantee else _text(title)


def _why(findings: Iterable[Finding], verdict: Verdict) -> str:
    """The reasons for the result of a row: failed checks, checks without a result, and the number of passed checks."""
    findings = tuple(findings)
    passed = sum(finding.verdict is Verdict.PASS for finding in findings)
    text = f"{passed} of {len(findings)} checks passed"
    deciding = [finding for finding in findings if finding.verdict is verdict and verdict is not Verdict.PASS]
    items = "".join(
        f'<li><a href="#{_text(finding.check.name)}">{_text(words.title(finding.check.name))}</a>: '
        f"{_text(finding.message)}</li>"
        for finding in deciding
    )
    items += "".join(f"<li>{_text(race)}</li>" for race in words.races(findings))
    return f"{text}{f'<ul>{items}</ul>' if items else ''}"


def _details(report: Report) -> str:
    sections = []
    for guarantee, (title, _) in GUARANTEES.items():
        findings = report.of(guarantee)
        if findings:
            sections.append(
                f'<section aria-labelledby="g{guarantee}">\n<h3 id="g{guarantee}">{_numbered(guarantee, title)}</h3>\n'
                f"{''.join(_finding(finding) for finding in findings)}</section>\n"
            )
    return f"<h2>The checks</h2>\n{''.join(sections)}" if sections else ""


def _finding(finding: Finding) -> str:
    check = finding.check
    parts = [f'<p class="asks">{_text(check.summary)}</p>']
    if finding.message:
        parts.append(f'<p class="message">{_text(finding.message)}</p>')
    parts += _evidence(finding)
    if finding.timeline and finding.verdict is Verdict.FAIL:
        parts.append(_timeline(finding))
    return (
        f'<details id="{_text(check.name)}" class="{_CLASSES[finding.verdict]}"'
        f"{' open' if finding.verdict is not Verdict.PASS else ''}>\n"
        f'<summary>{_badge(finding.verdict)} <span class="name">{_text(words.title(check.name))}</span> '
        f'<span class="number">check {check.number}: {_text(check.name)}, {finding.seconds:.1f} s</span></summary>\n'
        f"{''.join(parts)}\n</details>\n"
    )


def _evidence(finding: Finding) -> Iterator[str]:
    """One line for counts, and a list for each table, such as the answer to each kind of lost reply."""
    tables = {name: value for name, value in finding.evidence.items() if isinstance(value, Mapping)}
    line = words.evidence({name: value for name, value in finding.evidence.items() if name not in tables})
    if line:
        yield f'<p class="evidence">{_text(line)}</p>'
    for name, table in tables.items():
        items = "".join(f"<li>{_text(words.evidence({key: value}))}</li>" for key, value in table.items())
        yield f'<p class="evidence">{_text(name)}:</p><ul class="evidence">{items}</ul>'


def _timeline(finding: Finding) -> str:
    """One interleaving as a table: a column for each actor, if there are few enough, and a row for each step."""
    steps = [words.step(line) for line in finding.timeline]
    actors = list(dict.fromkeys(actor for _, actor, _ in steps if actor))
    columns = actors if 1 < len(actors) <= _MOST_ACTORS else []
    timed = any(when for when, _, _ in steps)
    head = ('<th scope="col">When</th>' if timed else "") + (
        "".join(f'<th scope="col">{_text(actor)}</th>' for actor in columns) or '<th scope="col">What happened</th>'
    )
    rows = []
    for when, actor, what in steps:
        cells = f'<td class="when">{_text(when)}</td>' if timed else ""
        if columns and actor:
            cells += "".join(
                f'<td data-who="{_text(column)}">{_text(what)}</td>' if column == actor else '<td class="idle"></td>'
                for column in columns
            )
        else:
            cell = f"{actor}: {what}" if actor else what
            cells += f'<td colspan="{max(1, len(columns))}">{_text(cell)}</td>'
        rows.append(f"<tr>{cells}</tr>\n")
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Timeline of the failure">'
        f'<table class="timeline"><caption>One interleaving with this failure, in order of time</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(rows)}</tbody></table></div>"
    )


def _calibration(calibration: Calibration | None) -> str:
    if calibration is None:
        return (
            '<section aria-labelledby="power">\n<h2 id="power">Does the suite catch broken stores?</h2>\n<p>This run '
            "was not calibrated. With <code>--calibrate</code> the suite also tests stores that are known to be "
            "broken, in the same environment, and reports which of them it caught.</p>\n</section>\n"
        )
    classes = {CAUGHT: "pass", MISSED: "fail"}
    rows = "".join(
        f'<tr><th scope="row">{_text(mutant.name)}<span>{_text(mutant.what)}</span></th>'
        f'<td><span class="badge {classes.get(mutant.outcome, "open")}">{_text(mutant.outcome)}</span></td>'
        f"<td>{_text('; '.join(words.title(name) for name in mutant.caught_by))}"
        f"{f'<p>{_text(mutant.reason)}</p>' if mutant.reason else ''}</td></tr>\n"
        for mutant in calibration.mutants
    )
    failed = calibration.control_failed
    control = f"failed {'; '.join(map(words.title, failed))}" if failed else "failed no check"
    rate = f"{calibration.caught} of {calibration.ran}"
    percent = f" ({100 * calibration.caught / calibration.ran:.0f} %)" if calibration.ran else ""
    left_out = len(calibration.mutants) - calibration.ran
    return (
        '<section aria-labelledby="power">\n<h2 id="power">Does the suite catch broken stores?</h2>\n'
        f"<p>In this environment the checks caught <strong>{rate}</strong> broken stores{percent}, each by every "
        f"check that must catch it{f'; {left_out} could not be run here' if left_out else ''}. A correct store "
        f"{control}. The calibration took {calibration.seconds:.0f} s.</p>\n{_races(calibration)}"
        '<table class="calibration"><thead><tr><th scope="col">Broken store</th><th scope="col">Result</th>'
        f'<th scope="col">Checks that must catch it</th></tr></thead>\n<tbody>\n{rows}</tbody></table>\n</section>\n'
    )


def _races(calibration: Calibration) -> str:
    items = "".join(f"<li>{_text(race)}</li>" for race in words.races(calibration.control))
    return f"<p>The races on the correct store:</p>\n<ul>{items}</ul>\n" if items else ""


def _footer(report: Report) -> str:
    meanings = "".join(f"<div><dt>{_badge(verdict)}</dt><dd>{said}</dd></div>\n" for verdict, said in _MEANINGS.items())
    notes = []
    if report.not_asked:
        names = "; ".join(words.title(name) for name in report.not_asked)
        notes.append(f"<p>Not run at this level: {_text(names)}.</p>")
    if report.leftovers:
        items = "".join(f"<li>{_text(path)}</li>" for path in report.leftovers)
        notes.append(f'<p>Not deleted, because of an error:</p><ul class="paths">{items}</ul>')
    again = f"<h2>Run it again</h2>\n<pre><code>{_text(report.replay)}</code></pre>\n" if report.replay else ""
    hint = "<p>Replace each “…”: a report never contains values of settings.</p>\n" if "…" in again else ""
    return f'{again}{hint}<h2>How to read it</h2>\n<dl class="meanings">\n{meanings}</dl>\n{"".join(notes)}\n'
