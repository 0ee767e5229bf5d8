"""The advice: what is said, to whom, and that the command does it."""

from dataclasses import replace

import pytest

from report.messy_table import MIB, messy
from tablelog.core import DeltaLog
from tablelog.core.log_maintenance.problems import Problem
from tablelog.errors import InvalidArgumentError
from tablelog.report import Severity, TableFacts, commands, report
from tablelog.report.advice import advice, expected_lookup
from tablelog.report.facts import Column, Partition


@pytest.fixture(scope="module")
def facts() -> TableFacts:
    return report(messy().log()).facts


def titles(facts: TableFacts) -> list[str]:
    return [item.title for item in advice(facts)]


def test_a_messy_table_gets_all_that_helps_it(facts: TableFacts) -> None:
    by_title = {item.title: item for item in advice(facts)}
    assert [*by_title] == ["Write a checkpoint", "Combine small files", "Compact after writes"]
    small = by_title["Combine small files"]
    assert small.command == "OPTIMIZE delta.`memory:///shop/events`"
    assert "39 become 2" in small.gain
    assert by_title["Write a checkpoint"].command.endswith('DeltaLog.for_path("memory:///shop/events").checkpoint()')


def test_the_advised_checkpoint_ends_the_advice() -> None:
    log = messy()
    handle: DeltaLog = log.log()
    assert "Write a checkpoint" in titles(report(handle).facts)
    handle.checkpoint()
    assert "Write a checkpoint" not in titles(report(log.log()).facts)


def test_a_healthy_table_gets_none(facts: TableFacts) -> None:
    healthy = replace(
        facts,
        files=replace(facts.files, small_files=0, after=facts.files.count),
        log=replace(facts.log, since_checkpoint=1),
        tombstones=replace(facts.tombstones, expired_files=0, expired_size=0),
        vectors=replace(facts.vectors, heavy_files=0),
        commits=(),
        skipping=replace(facts.skipping, columns=(), used=()),
    )
    assert advice(healthy) == ()


def test_optimize_names_the_partitions_that_have_most_small_files(facts: TableFacts) -> None:
    worst = Partition((("day", "a'b"), ("k", None)), 30, 60 * MIB, 30, 60 * MIB, 1)
    others = tuple(Partition((("day", str(i)), ("k", "x")), 2, 8 * MIB, 2, 8 * MIB, 1) for i in range(9))
    of = replace(
        facts,
        files=replace(facts.files, count=48, small_files=48, after=10),
        partitions=replace(facts.partitions, columns=("day", "k"), count=10, fragmented=(worst, *others)),
    )
    small = next(item for item in advice(of) if item.title.startswith("Combine"))
    assert small.title == "Combine small files in 1 partition"
    assert small.command.endswith("WHERE `day` = 'a\\'b' AND `k` IS NULL")
    assert "48 become 19" in small.gain
    assert "60 MiB" in small.gain


def test_vacuum_says_how_much_it_frees(facts: TableFacts) -> None:
    of = replace(facts, tombstones=replace(facts.tombstones, expired_files=10, expired_size=2 * facts.files.size))
    item = next(item for item in advice(of) if item.command.startswith("VACUUM"))
    assert item.severity is Severity.WARNING
    assert "312 MiB, 200 %" in item.gain
    slight = replace(of, tombstones=replace(of.tombstones, expired_size=1))
    assert not any(item.command.startswith("VACUUM") for item in advice(slight))


def test_purge_says_what_readers_save(facts: TableFacts) -> None:
    of = replace(facts, vectors=replace(facts.vectors, heavy_files=10, heavy_size=40 * MIB, freed=9 * MIB))
    item = next(item for item in advice(of) if item.command.startswith("REORG"))
    assert "9 MiB less" in item.gain
    assert item.command == "REORG TABLE delta.`memory:///shop/events` APPLY (PURGE)"


def test_z_order_takes_the_columns_of_past_conditions(facts: TableFacts) -> None:
    files = replace(facts.files, count=1000, size=1000 * 1024 * MIB, after=1000, small_files=0)
    columns = tuple(
        Column(path, "long", False, 1.0, lookup) for path, lookup in ((("a",), 900), (("b", "x.y"), 800), (("c",), 1.5))
    )
    skipping = replace(facts.skipping, columns=columns, used=(("b.x.y", 3), ("c", 9)))
    of = replace(facts, files=files, skipping=skipping, partitions=replace(facts.partitions, count=1))
    item = next(item for item in advice(of) if "ZORDER" in item.command)
    assert item.command.endswith("ZORDER BY (`b`.`x.y`)")
    assert "about 1 of 1,000 files" in item.gain
    clustered = replace(of, skipping=replace(skipping, clustering=("a",)))
    assert not any("ZORDER" in item.command for item in advice(clustered))
    # No condition is known, and no column skips: a suggestion.
    blind = replace(of, skipping=replace(skipping, columns=columns[:2], used=()))
    item = next(item for item in advice(blind) if "ZORDER" in item.command)
    assert item.severity is Severity.NOTE


@pytest.mark.parametrize(
    ("partitions", "files", "columns", "read"), [(1, 100, 1, 1), (1, 100, 2, 10), (10, 100, 1, 10), (10, 10, 2, 10)]
)
def test_what_a_search_reads_after_z_order(partitions: int, files: int, columns: int, read: float) -> None:
    assert expected_lookup(partitions, files, columns) == pytest.approx(read)


def test_many_tiny_partitions_are_too_many(facts: TableFacts) -> None:
    of = replace(facts, partitions=replace(facts.partitions, count=500, median=MIB))
    assert "Use fewer partitions" in titles(of)


def test_problems_of_the_log_come_first(facts: TableFacts) -> None:
    problems = (
        Problem("warning", "commits-unused", (), "w"),
        Problem("error", "commit-damaged", ("f",), "version 3 can't be read"),
    )
    found = advice(replace(facts, log=replace(facts.log, problems=problems)))
    assert found[0].title == "Repair the log"
    assert found[0].severity is Severity.ERROR
    assert "version 3 can't be read" in found[0].why


def test_a_damaged_hint_is_a_warning() -> None:
    log = messy()
    log.log().checkpoint()
    log.write("_last_checkpoint", b"no JSON")
    item = next(item for item in report(log.log()).advice if item.section == "log")
    assert item.title == "Tidy the log"
    assert "_last_checkpoint" in item.why


@pytest.mark.parametrize("arguments", [{"commits": 0}, {"target_file_size": 0}, {"conf": {"a": "b"}}])
def test_wrong_arguments(arguments: dict) -> None:  # type: ignore[type-arg]
    with pytest.raises(InvalidArgumentError):
        report(messy().log(), **arguments)


def test_sql_of_hostile_names() -> None:
    assert commands.table("/a`b") == "delta.`/a``b`"
    assert commands.literal("o'\\x") == "'o\\'\\\\x'"
    assert commands.partitions([(("d", "1"),), (("d", "2"),)]) == "`d` IN ('1', '2')"
    assert commands.partitions([(("d", "1"),), (("d", None),)]) == "(`d` = '1') OR (`d` IS NULL)"
    assert commands.partitions([]) == ""
