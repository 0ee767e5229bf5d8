"""`tablelog history`, `detail`, `schema`, `files`, `log` and `cat`: what they show, in each form."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.arrow_table import ArrowTable
from support.command_line import Run, in_process, on_terminal
from tablelog.cli.group import root
from tablelog.core import AddFile, DeltaLog, Metadata, Operation
from tablelog.core.protocol.actions import CommitInfo, Protocol
from tablelog.core.protocol.codec import serialise
from tablelog.core.protocol.deletion_vectors import DeletedRows, inline
from tablelog.core.protocol.schema import StructType, from_arrow, to_json

COMMANDS = ("history", "detail", "schema", "files", "log", "cat")


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_writes_json_and_plain_lines(command: str, table: ArrowTable, run: Run) -> None:
    plain, as_json = run(command, table.path), run(command, table.path, "--json")
    assert (plain.code, as_json.code) == (0, 0)
    assert plain.out
    assert isinstance(as_json.json, dict)
    assert "\x1b" not in plain.out + as_json.out
    assert plain.err == as_json.err == ""


def test_history_has_the_columns_of_describe_history(table: ArrowTable, run: Run) -> None:
    document = run("history", table.path, "--json").json
    assert document["table"] == table.path
    assert [commit["version"] for commit in document["history"]] == [3, 2, 1, 0]
    newest = document["history"][0]
    assert newest["operation"] == "WRITE"
    assert newest["operationParameters"]["mode"] == "Append"
    assert newest["timestamp"].endswith("Z")
    assert [row[0] for row in run("history", table.path, "--limit", 2).rows] == ["version", "3", "2"]


def test_a_terminal_says_that_there_are_older_commits(table: ArrowTable) -> None:
    shown = on_terminal("history", table.path, "--limit", 2).out
    assert "CREATE TABLE" not in shown
    assert "WRITE" in shown


def test_detail_counts_files_bytes_and_rows(table: ArrowTable, run: Run) -> None:
    detail = run("detail", table.path, "--json").json
    assert (detail["version"], detail["numFiles"], detail["numRecords"]) == (3, 3, 9)
    assert detail["sizeInBytes"] == sum((table.root / name).stat().st_size for name in table.files)
    assert detail["partitionColumns"] == ["day"]
    assert run("detail", table.path, "--at", 1, "--json").json["numRecords"] == 3
    assert "rows\t9" in run("detail", table.path).out.splitlines()


def test_schema_lists_columns_with_types(table: ArrowTable, run: Run) -> None:
    columns = run("schema", table.path, "--json").json["columns"]
    assert [(c["name"], c["type"], c["partition"]) for c in columns] == [
        ("id", "bigint", False),
        ("user", "string", False),
        ("amount", "double", False),
        ("day", "date", True),
    ]


def test_files_are_filtered_by_values_and_sizes(table: ArrowTable, run: Run) -> None:
    def paths(*words: object) -> list[str]:
        return [file["path"] for file in run("files", table.path, *words, "--json").json["files"]]

    first, second, third = table.files
    assert paths() == [first, third, second]  # by path
    assert paths("--where", "day = 2024-05-02") == [second]
    assert paths("--where", "id >= 6") == [third]
    assert paths("--where", "ID < 3") == [first]
    assert paths("--where", "day = '2024-05-01'", "--where", "id > 4") == [third]
    assert paths("--where", "user is null") == []
    assert paths("--smaller-than", 1) == []
    assert len(paths("--larger-than", 1)) == 3
    assert paths("--with-deletion-vectors") == []
    assert paths("--limit", 1) == [first]
    assert run("files", table.path, "--limit", 1, "--json").json["numFiles"] == 3


def test_files_are_sorted_by_size_or_rows(table: ArrowTable, run: Run) -> None:
    large = table.append(100, rows=50)
    for key in ("size", "rows"):
        assert run("files", table.path, "--sort", key, "--json").json["files"][0]["path"] == large.path


def test_files_show_statistics(table: ArrowTable, run: Run) -> None:
    file = run("files", table.path, "--stats", "--where", "id = 4", "--json").json["files"][0]
    assert (file["stats"]["minValues"]["id"], file["stats"]["maxValues"]["id"]) == (3, 5)
    assert "id: 3 … 5" in run("files", table.path, "--stats").out


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("nothing", "COLUMN OPERATOR VALUE"),
        ("nosuch = 1", "there is no column 'nosuch'"),
        ("id = x", "isn't a value of the type long"),
    ],
)
def test_a_wrong_condition_is_wrong_usage(condition: str, said: str, table: ArrowTable, run: Run) -> None:
    ran = run("files", table.path, "--where", condition)
    assert ran.code == 2
    assert said in ran.err


def test_log_shows_the_actions_of_a_version(table: ArrowTable, run: Run) -> None:
    actions = run("log", table.path, 1, "--json").json["actions"]
    assert [name for action in actions for name in action] == ["commitInfo", "add"]
    assert actions[1]["add"]["path"] == table.files[0]
    assert run("log", table.path, "v1", "--json").json["version"] == 1
    assert any(row[:2] == ["add", table.files[2]] for row in run("log", table.path).rows)
    assert len(run("log", table.path, 1, "--json", "--limit", 1).json["actions"]) == 1


def test_log_says_why_a_version_is_not_there(table: ArrowTable, run: Run) -> None:
    future = run("log", table.path, 99, "--json")
    assert (future.out, future.code) == ("", 4)
    assert f"version 99 of {table.path} isn't in the log; the versions that are: 0 to 3" in future.err
    table.log().checkpoint()
    table.commit_file(0).unlink()
    assert "the versions that are: 1 to 3" in run("log", table.path, 0).err
    table.commit_file(2).unlink()
    missing = run("log", table.path, 2)
    assert (missing.out, missing.code) == ("", 5)
    assert f"{2:020}.json is missing" in missing.err


def test_log_compares_two_versions(table: ArrowTable, run: Run) -> None:
    log = table.log()
    transaction = log.transaction()
    snapshot = log.snapshot()
    wider = pa.schema(
        [
            *(pa.field(name, kind) for name, kind in (("id", pa.int64()), ("user", pa.string()))),
            pa.field("amount", pa.float64()),
            pa.field("day", pa.date32()),
            pa.field("note", pa.string()),
        ]
    )
    transaction.set_metadata(
        replace(
            snapshot.metadata,
            schema_string=to_json(from_arrow(wider)),
            configuration={"delta.appendOnly": "false", "x": "1"},
        )
    )
    transaction.commit([log.snapshot().add_files([0])[0].remove(1)], Operation("DELETE"))
    document = run("log", table.path, 1, 4, "--json").json
    assert (document["from"], document["to"]) == (1, 4)
    assert document["added"]["numFiles"] == 2
    assert document["added"]["numRecords"] == 6
    assert document["removed"]["paths"] == [table.files[0]]
    assert document["columns"] == [{"name": "note", "before": None, "after": "string"}]
    assert {change["name"] for change in document["properties"]} == {"delta.appendOnly", "x"}
    few = run("log", table.path, 1, 4, "--limit", 1, "--json").json
    assert (few["added"]["numFiles"], len(few["added"]["paths"]), len(few["properties"])) == (2, 1, 1)
    back = run("log", table.path, 4, 1, "--json").json
    assert back["columns"] == [{"name": "note", "before": "string", "after": None}]
    assert run("log", table.path, 2, 2).out.splitlines()[-1] == "no difference"
    assert f"-\t{table.files[0]}" in run("log", table.path, 1, 4).out


def test_a_version_can_be_named_by_a_time(table: ArrowTable, run: Run) -> None:
    os.utime(table.commit_file(0), (1_700_000_000, 1_700_000_000))
    os.utime(table.commit_file(1), (1_700_000_100, 1_700_000_100))
    assert run("detail", table.path, "--at", "2023-11-14 22:15:30", "--json").json["version"] == 1
    assert run("detail", table.path, "--at", "2023-11-14 22:14", "--json").json["version"] == 0
    assert run("detail", table.path, "--at", "2023-11-14T22:14Z", "--json").json["version"] == 0
    assert run("detail", table.path, "--at", "2023-11-15 00:16+02:00", "--json").json["version"] == 1
    assert run("detail", table.path, "--at", "1999-01-01").code == 4
    ran = run("detail", table.path, "--at", "yesterday")
    assert ran.code == 2
    assert "expected a version" in ran.err


def test_cat_shows_rows_with_their_partition_values(table: ArrowTable, run: Run) -> None:
    rows = run("cat", table.path, "--json").json["rows"]
    assert sorted(row["id"] for row in rows) == list(range(9))
    assert {row["day"] for row in rows if row["id"] in (3, 4, 5)} == {"2024-05-02"}
    ran = run("cat", table.path, "--columns", "DAY,id", "--where", "id = 4")
    assert ran.rows == [["day", "id"], ["2024-05-02", "4"]]
    assert len(run("cat", table.path, "--limit", 2).rows) == 3
    assert run("cat", table.path, "--columns", "nosuch").code == 2


def other_table(root: Path, data: pa.Table, **stats: Any) -> ArrowTable:
    """A table with one file of this data."""
    table = ArrowTable.__new__(ArrowTable)
    table.root, table.log_directory, table.files = root, root / "_delta_log", ["part-0.parquet"]
    root.mkdir()
    pq.write_table(data, root / "part-0.parquet")
    transaction = table.log().transaction()
    transaction.set_metadata(Metadata("id", to_json(from_arrow(data.schema)), (), {}))
    size = (root / "part-0.parquet").stat().st_size
    transaction.commit([AddFile("part-0.parquet", {}, size, 1, True, **stats)], Operation("CREATE TABLE"))
    return table


def test_names_with_special_characters_are_in_backquotes(tmp_path: Path, run: Run) -> None:
    data = {"a=b": [1, 2], "c,d": ["x", "y"], "e`f": [True, False], "g.h": [5, 6], "is null": [7, 8]}
    stored = pa.table({f"col-{number}": values for number, values in enumerate(data.values())})
    table = other_table(tmp_path / "t", stored)
    schema = json.loads(table.log().snapshot().metadata.schema_string)
    for number, (field, name) in enumerate(zip(schema["fields"], data, strict=True)):
        mapping = {"delta.columnMapping.id": number + 1, "delta.columnMapping.physicalName": field["name"]}
        field.update(name=name, metadata=mapping)
    configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "5"}
    mapped = Metadata("id", json.dumps(schema), (), configuration)
    line = b'{"protocol":{"minReaderVersion":2,"minWriterVersion":5}}\n'
    (table.log_directory / f"{1:020}.json").write_bytes(line + serialise([mapped]))
    path = table.path
    assert run("cat", path, "--where", "`a=b` = 2", "--columns", "`c,d`, `e``f`,g.h").rows[1:] == [["y", "false", "6"]]
    assert run("cat", path, "--where", "`e``f` = true", "--where", "`is null` is not null").rows[1][0] == "1"
    assert run("cat", path, "--where", "`g.h`>5", "--columns", "`a=b`").rows == [["a=b"], ["2"]]
    for words, message in (
        (("--where", "`a=b = 2"), "needs COLUMN OPERATOR VALUE"),
        (("--columns", ","), "--columns needs the name of a column"),
        (("--columns", "`c,e`"), "no column '`c,e`'"),
    ):
        refused = run("cat", path, *words)
        assert (refused.code, message in refused.err) == (2, True), refused.err


def test_a_condition_on_a_collation_is_refused(tmp_path: Path, run: Run) -> None:
    """Spark would find "ABC" by "abc"; here no such comparison is known."""
    table = other_table(tmp_path / "t", pa.table({"s": ["ABC"], "n": [1]}))
    metadata = table.log().snapshot().metadata
    schema = metadata.schema_string.replace('"metadata":{}', '"metadata":{"__COLLATIONS":{"s":"spark.UTF8_LCASE"}}', 1)
    transaction = table.log().transaction()
    transaction.set_metadata(replace(metadata, schema_string=schema))
    transaction.commit([], Operation("SET COLLATION"))
    refused = run("cat", table.path, "--where", "s = 'abc'")
    assert (refused.code, "has a collation" in refused.err) == (2, True)
    assert len(run("cat", table.path, "--where", "s is not null").rows) == 2


def test_rows_of_many_columns_are_below_each_other_on_a_terminal(tmp_path: Path) -> None:
    many = {f"column_{n}": [f"value {n}", f"other {n}"] for n in range(500)}
    shown = on_terminal("cat", other_table(tmp_path / "many", pa.table(many)).path).out
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert [plain.count(text) for text in ("row 1\r", "row 2\r", "value 0 ", "other 499")] == [1, 1, 1, 1]
    assert re.search(r"^column_17 +value 17 *\r$", plain, re.MULTILINE)
    few = {f"column_{n}": [f"value {n}"] for n in range(5)}
    shown = on_terminal("cat", other_table(tmp_path / "few", pa.table(few)).path).out
    assert re.search("value 0 +value 1 +value 2", shown), "a table"


def test_conditions_on_empty_texts_and_nan(tmp_path: Path, run: Run) -> None:
    data = {"n": range(4), "s": ["", "a", None, "b"], "x": [1.0, float("nan"), 3.0, None]}
    table = other_table(tmp_path / "t", pa.table(data))

    def found(condition: str) -> list[int]:
        return [row["n"] for row in run("cat", table.path, "--where", condition, "--json").json["rows"]]

    assert found("s = ''") == [0]
    assert found('s != ""') == [1, 3]
    assert found("s >= ''") == [0, 1, 3]
    # As in Spark, NaN equals itself and is the largest number.
    expected = {"=": [1], "!=": [0, 2], "<": [0, 2], "<=": [0, 1, 2], ">": [], ">=": [1]}
    assert {operator: found(f"x {operator} NaN") for operator in expected} == expected
    expected = {"=": [2], "!=": [0, 1], "<": [0], "<=": [0, 2], ">": [1], ">=": [1, 2]}
    assert {operator: found(f"x {operator} 3") for operator in expected} == expected
    assert run("files", table.path, "--where", "s = ''", "--json").json["numFiles"] == 1
    for condition in ("n = ''", "x > "):
        assert "isn't a value of the type" in run("cat", table.path, "--where", condition).err


def test_statistics_that_are_no_json_numbers_are_texts(tmp_path: Path, run: Run) -> None:
    stats = '{"numRecords":1,"minValues":{"x":NaN},"maxValues":{"x":-Infinity,"y":1e999}}'
    table = other_table(tmp_path / "t", pa.table({"x": [1.0]}), stats=stats)
    (file,) = json.loads(run("files", table.path, "--stats", "--json").out, parse_constant=pytest.fail)["files"]
    assert (file["stats"]["minValues"], file["stats"]["maxValues"]) == (
        {"x": "NaN"},
        {"x": "-Infinity", "y": "1e999"},
    )


def test_the_header_of_cat_has_no_control_characters(tmp_path: Path, run: Run) -> None:
    table = other_table(tmp_path / "t", pa.table({"x": [1]}))
    path, schema = table.commit_file(0), table.log().snapshot().schema
    hostile = to_json(StructType((replace(schema.fields[0], name="id\x1b[2J\tz\nq"),)))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line.get("metaData", {}).update(schemaString=hostile)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for crc in table.log_directory.glob("*.crc"):
        crc.unlink()
    assert run("cat", table.path).out.splitlines()[0] == r"id\e[2J\tz\nq"


def test_standard_output_may_be_closed(table: ArrowTable) -> None:
    line = f"{sys.executable} -m tablelog.cli history {table.path} >&-; echo $?"
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout, ran.stderr) == ("0\n", "")


def test_cat_leaves_out_deleted_rows(tmp_path: Path, run: Run) -> None:
    features = frozenset({"deletionVectors"})
    table = ArrowTable(tmp_path / "t", protocol=Protocol(3, 7, features, features))
    add = table.append(0)
    marked = replace(add, deletion_vector=inline(DeletedRows.of([1])))
    table.commit(add.remove(1), marked)
    assert [row["id"] for row in run("cat", table.path, "--json").json["rows"]] == [0, 2]
    detail = run("detail", table.path, "--json").json
    assert (detail["numRecords"], detail["numDeletedRecords"]) == (2, 1)
    assert len(run("files", table.path, "--with-deletion-vectors", "--json").json["files"]) == 1


def test_cat_names_a_file_that_is_missing_or_no_parquet(table: ArrowTable, run: Run) -> None:
    (table.root / table.files[0]).write_bytes(b"not parquet")
    ran = run("cat", table.path)
    assert ran.code == 5
    assert table.files[0] in ran.err
    (table.root / table.files[0]).unlink()
    ran = run("cat", table.path)
    assert ran.code == 5
    assert "doesn't exist" in ran.err


@pytest.mark.parametrize(
    "form", ["{0}", "{0}/", "file://{0}", "file:{0}", "{0}/_delta_log", "{0}/_delta_log/", "./events"]
)
def test_every_form_of_a_path_is_the_same_table(
    form: str, table: ArrowTable, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(table.root.parent)
    assert run("detail", form.format(table.path), "--json").json["version"] == 3


@pytest.mark.slow
def test_escape_codes_of_a_hostile_table_are_shown_and_not_obeyed(tmp_path: Path, run: Run) -> None:
    hostile = "\x1b[2J\x1b]0;owned\x07\u202egnp\x9b31m\r\nline"
    table = ArrowTable(tmp_path / "t", {"owner": hostile})
    table.append(0)
    commit = [CommitInfo(operation=hostile, user_name=hostile, operation_parameters={hostile: hostile})]
    from tablelog.core.protocol import codec

    table.commit_file(2).write_bytes(codec.serialise([*commit, *table.log().snapshot().add_files()]))
    for command in COMMANDS:
        for ran in (run(command, table.path), run(command, table.path, "--json"), on_terminal(command, table.path)):
            assert ran.code == 0
            text = re.sub(r"\r(\x1b\[1A)?\x1b\[2K", "", ran.out.replace("\r\n", "\n"))  # a progress bar is erased
            for code in ("\x1b[2J", "\x1b]0", "\x07", "\u202e", "\x9b", "\r"):
                assert code not in text, command
    missing = run("detail", f"/nowhere/{hostile.encode()!r}\x1b[2J")
    assert "\x1b" not in missing.err
    assert len(missing.err.splitlines()) == 1


def test_a_terminal_gets_colours_and_no_color_takes_them_away(table: ArrowTable) -> None:
    assert "\x1b[" in on_terminal("history", table.path).out
    assert "\x1b[3" not in on_terminal("history", table.path, environment={"NO_COLOR": "1"}).out
    assert "\x1b[" not in on_terminal("history", table.path, environment={"TERM": "dumb"}).out


def test_a_reader_that_goes_is_no_error(tmp_path: Path) -> None:
    table = ArrowTable(tmp_path / "t")
    table.append(0, rows=100_000)
    line = f"{sys.executable} -m tablelog.cli cat {table.path} | head -2; echo ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout.splitlines()[0] == "id\tuser\tamount\tday"
    assert ran.stdout.splitlines()[-1] == "0"
    assert ran.stderr == ""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_output_that_lacks_a_letter_gets_an_escape(encoding: str, table: ArrowTable) -> None:
    ran = in_process("files", table.path, "--stats", environment={"PYTHONIOENCODING": encoding})
    assert ran.code == 0
    assert "\\u2026" in ran.out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nosuch",), 2, "There is no command"),
        (("histroy", "x"), 2, "Did you mean 'history'?"),
        (("history",), 2, "Missing argument 'TABLE'. Try 'tablelog history --help'."),
        (("history", "{table}", "--nosuch"), 2, "--nosuch"),
        (("files", "{table}", "--sort", "x"), 2, "Try 'tablelog files --help'."),
        (("export", "{table}", "--manifest", "--at", "1"), 2, "--at or --output. Try 'tablelog export --help'."),
        (("--nosuch",), 2, "Try 'tablelog --help'."),
        (("history", "{table}", "my-secret"), 2, "more arguments"),
        (("history", "{table}", "--option", "my-secret"), 2, "expected name=value"),
        (("history", "{table}", "--option", "a=my-secret", "--option", "a=b"), 2, "a is set twice"),
        (("history", "{table}", "--limit", "0"), 2, "0 is not in the range"),
        (("history", "/nowhere/at/all"), 4, "there is no Delta table"),
        (("history", "nosuch://bucket/x"), 2, "no store supports nosuch"),
        (("detail", "{table}", "--at", "99"), 4, "version 99"),
        (("history", ""), 2, "the path is empty"),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(
    words: tuple[str, ...], code: int, said: str, table: ArrowTable, run: Run
) -> None:
    ran = run(*(word.format(table=table.path) for word in words))
    assert ran.code == code
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    assert "my-secret" not in ran.err
    assert ran.out == ""


def test_a_damaged_log_is_its_own_exit_code(table: ArrowTable, run: Run) -> None:
    table.commit_file(1).write_text("{")
    ran = run("detail", table.path)
    assert ran.code == 5
    assert len(ran.err.splitlines()) == 1


def test_an_interrupted_command_is_one_line(
    table: ArrowTable, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(DeltaLog, "snapshot", interrupted)
    with pytest.raises(SystemExit) as ended:
        root.main(["detail", table.path], prog_name="tablelog")
    assert ended.value.code == 130
    assert capsys.readouterr().err == "tablelog detail: interrupted\n"


def test_verbose_shows_the_traceback_of_an_error(table: ArrowTable) -> None:
    table.commit_file(1).write_text("{")
    assert "Traceback" in in_process("--verbose", "detail", table.path).err
    assert "Traceback" not in in_process("detail", table.path).err


def test_no_command_imports_spark(table: ArrowTable) -> None:
    code = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('pyspark', 'py4j', 'pandas'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "from tablelog.cli import main\n"
        f"codes = [main([command, {table.path!r}, '--json']) for command in {COMMANDS!r}]\n"
        "sys.exit(max(codes))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr


def test_help_of_each_command_has_an_example(run: Run) -> None:
    listed = root.list_commands(click.Context(root))
    assert {*COMMANDS} <= {*listed}
    overview = run("--help").out
    for command in listed:
        assert f"\n  {command} " in overview
        help_text = run(command, "--help").out
        assert "Examples:" in help_text, command
        assert f"tablelog {command}" in help_text


def test_no_command_is_help(run: Run) -> None:
    assert (ran := run()).out == run("--help").out
    assert (ran.code, ran.err) == (0, "")
