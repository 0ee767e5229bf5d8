"""The report as JUnit XML, for CI servers."""

import re
from xml.etree import ElementTree

from .. import words
from ..model import Verdict
from .report import GUARANTEES, Report

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(report: Report) -> str:
    """One test case for each check; NOT ESTABLISHED is `skipped`, with its reason."""
    suite = ElementTree.Element(
        "testsuite",
        name=_text(f"tablelog conformance: {report.what}"),
        tests=str(len(report.findings)),
        failures=str(report.count(Verdict.FAIL)),
        errors="0",
        skipped=str(report.count(Verdict.NOT_ESTABLISHED)),
        time=f"{report.seconds:.3f}",
        timestamp=report.started,
    )
    properties = ElementTree.SubElement(suite, "properties")
    facts = {"root": report.root, "level": report.level.name.lower(), "seed": report.seed}
    if report.obstacle:
        facts["obstacle"] = report.obstacle
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", name=name, value=_text(str(value)))
    for finding in report.findings:
        group = GUARANTEES[finding.check.guarantee][0]
        case = ElementTree.SubElement(
            suite, "testcase", classname=group, name=finding.check.name, time=f"{finding.seconds:.3f}"
        )
        message = "not run, see the property obstacle" if report.obstacle else finding.message
        if finding.verdict is Verdict.FAIL:
            failure = ElementTree.SubElement(case, "failure", message=_text(message))
            failure.text = _text("\n".join(finding.timeline))
        elif finding.verdict is Verdict.NOT_ESTABLISHED:
            ElementTree.SubElement(case, "skipped", message=_text(f"NOT ESTABLISHED: {message}"))
        evidence = words.evidence(finding.evidence)
        if evidence:
            ElementTree.SubElement(case, "system-out").text = _text(evidence)
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _text(text: str) -> str:
    """`text` without the characters that XML doesn't allow."""
    return _NOT_XML.sub("\ufffd", text)
