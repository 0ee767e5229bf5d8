"""Reports made up for tests, with all that a report can hold."""

from dataclasses import replace

from tablelog.conformance.calibration import CAUGHT, MISSED, NOT_RUN, Calibration, MutantResult
from tablelog.conformance.model import Check, Context, Finding, Level, Verdict
from tablelog.conformance.reports.report import Report


def nothing(_context: Context) -> None:
    """A check that finds nothing."""


def check(name: str, guarantee: int = 2, number: int = 1) -> Check:
    return Check(number, name, guarantee, "One writer is stopped at each of its steps in turn.", nothing)


TIMELINE = (
    "+0.0 ms writer A: asks whether 00000000000000000003.json is there: HEAD -> 404",
    "+0.4 ms writer A: held before its write",
    "+0.6 ms writer B: PUT 00000000000000000003.json, If-None-Match: * -> 200",
    "+1.9 ms writer B: told that it won",
    "+2.0 ms writer A: goes on: PUT 00000000000000000003.json, If-None-Match: * -> 200",
    "+3.1 ms writer A: told that it won",
    "+4.0 ms reader: sees the bytes of writer A <b>only</b>",
)
PASSED = Finding(check("reads_what_was_written", 1, 8), Verdict.PASS, "", 0.12, {"sizes": [0, 1, 1023]}, ())
RACED = Finding(
    check("one_winner_among_threads", 2, 1), Verdict.PASS, "", 3.0, {"rounds": 40, "writers": 8, "overlap": 7.26}, ()
)
FAILED = Finding(
    check("one_winner_in_every_interleaving", 2, 3),
    Verdict.FAIL,
    "2 of 2 writers of one file were told that they won when the first was held before step 17, client.py:210 (line)",
    1.5,
    {"steps held at": 17, "answers": {"the reply is lost": "unknown", "500 <late>": "won"}},
    TIMELINE,
)
OPEN = Finding(
    check("a_lost_reply_is_never_lost", 4, 5),
    Verdict.NOT_ESTABLISHED,
    "the address of the service isn't known, so no proxy could stand in front of it",
    0.0,
    {},
    (),
)
CALIBRATION = Calibration(
    (
        MutantResult(
            "looks, then writes",
            "exists() and then a write (fsspec's local create)",
            ("one_winner_in_every_interleaving",),
            CAUGHT,
            (),
            "",
            1.0,
        ),
        MutantResult(
            "caps its listing",
            "a listing ends at 1,000",
            ("reads_what_was_written",),
            MISSED,
            ("reads_what_was_written",),
            "reads_what_was_written: PASS",
            2.0,
        ),
        MutantResult(
            "rclone serve s3",
            "ignores If-None-Match",
            ("one_winner_among_threads",),
            NOT_RUN,
            (),
            "rclone isn't installed",
            0.0,
        ),
    ),
    (PASSED, RACED),
    4.5,
)
REPORT = Report(
    what="S3LogStore, Some Storage 4.2",
    root="s3://bucket/prefix",
    declared={
        "class": "tablelog.logstore.s3.conditional_put_store.S3LogStore",
        "exclusion": "global",
        "partial_writes_visible": False,
        "atomic_overwrite": True,
    },
    versions={"tablelog": "0.1.0", "python": "3.12.1", "system": "Linux-6.1"},
    level=Level.STANDARD,
    seed=358755,
    started="2026-11-21T09:00:00+00:00",
    seconds=61.25,
    findings=(PASSED, RACED, FAILED, OPEN),
    not_asked=("writes_of_100_mb",),
    leftovers=("s3://bucket/prefix/tablelog-conformance-1/x",),
    calibration=CALIBRATION,
    replay="tablelog conformance s3://bucket/prefix --option secret=… --level standard --seed 358755",
)
ALL_PASSED = replace(REPORT, findings=(PASSED, RACED), calibration=None)
