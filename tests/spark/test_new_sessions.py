"""Programs that make their session themselves: `enabled_sessions`, and `python -m tablelog.spark`."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.sessions import session_builder
from support.spark_tables import Table
from tablelog.engine.jvm import builders
from tablelog.engine.jvm.connection.gateway import Gateway
from tablelog.engine.jvm.registry import patching
from tablelog.engine.jvm.registry.python_internals import PATCHES
from tablelog.errors import UnsupportedEnvironmentError
from tablelog.spark import disable, enable, enabled_sessions, is_enabled
from tablelog.spark.__main__ import USAGE, main

MINE = [patch for patch in PATCHES if patch.by == "spark/sessions/new_sessions"]

WRITES = """\
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate().newSession()
if __name__ == "__main__":
    spark.range(3).write.format("delta").save(sys.argv[1])
"""


@pytest.fixture
def plain(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of the run, not enabled."""
    disable(spark)
    yield spark
    enable(spark)


def _methods() -> list[object]:
    return [vars(patching._owner(patch))[patch.attribute] for patch in MINE]


def test_what_the_builder_and_new_session_return_is_enabled_until_the_end(plain: SparkSession) -> None:
    before = _methods()
    with enabled_sessions():
        assert not any(one is other for one, other in zip(before, _methods(), strict=True))
        built = SparkSession.builder.getOrCreate()
        assert built is plain
        assert is_enabled(built)
        new = built.newSession()
        assert is_enabled(new)
        assert is_enabled(SparkSession.builder.getOrCreate())
    assert _methods() == before
    assert not is_enabled(plain)
    assert not is_enabled(new)
    assert not is_enabled(plain.newSession())


def test_a_session_that_was_enabled_before_stays_enabled(spark: SparkSession) -> None:
    with enabled_sessions():
        assert is_enabled(SparkSession.builder.getOrCreate())
        with enabled_sessions():
            inner = spark.newSession()
        assert is_enabled(inner), "the outer block enabled it"
    assert is_enabled(spark)
    assert not is_enabled(inner)


def test_an_error_ends_the_block_too(plain: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _methods()
    key = "spark.sql.extensions"
    with monkeypatch.context() as patched:
        patched.setattr(builders, "session_conf", lambda session: {key: "io.delta.sql.DeltaSparkSessionExtension"})
        patched.setattr(Gateway, "has_class", lambda gateway, name: True)
        with pytest.raises(UnsupportedEnvironmentError, match="delta-spark is active"), enabled_sessions():
            plain.newSession()
    assert _methods() == before


@pytest.mark.parametrize("as_module", [False, True])
def test_a_program_runs_in_enabled_sessions(
    plain: SparkSession, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_module: bool
) -> None:
    (tmp_path / "a_program_of_ours.py").write_text(WRITES)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "argv", ["unchanged"])
    program = ["-m", "a_program_of_ours"] if as_module else [str(tmp_path / "a_program_of_ours.py")]
    assert main([*program, table.path]) == 0
    assert (Path(table.path) / "_delta_log" / f"{0:020}.json").exists()
    assert not is_enabled(plain)


def test_arguments_that_name_no_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert capsys.readouterr().out == USAGE
    for arguments in ([], ["-m"], ["--what", "x.py"]):
        assert main(arguments) == 2
        assert capsys.readouterr().err == USAGE
    assert main(["no_such_program"]) == 2
    assert "there is no script no_such_program, and no command of that name" in capsys.readouterr().err


@pytest.mark.slow
def test_a_process_of_its_own_with_a_session_that_it_stops_and_makes_again(tmp_path: Path) -> None:
    conf = session_builder("local[1]", {"spark.sql.warehouse.dir": str(tmp_path / "warehouse")})._options
    program = tmp_path / "job.py"
    program.write_text(
        "import sys\n"
        "from pyspark.sql import SparkSession\n"
        "def session():\n"
        "    builder = SparkSession.builder\n"
        f"    for key, value in {conf!r}.items():\n"
        "        builder = builder.config(key, value)\n"
        "    return builder.getOrCreate()\n"
        "session().sql('CREATE TABLE t USING delta LOCATION \\'' + sys.argv[1] + '\\' AS SELECT 7 AS id')\n"
        "session().stop()\n"
        "print('rows:', session().read.format('delta').load(sys.argv[1]).collect())\n"
        "session().stop()\n"
        "sys.exit(3)\n"
    )
    command = [sys.executable, "-m", "tablelog.spark", str(program), str(tmp_path / "table")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (3, "rows: [Row(id=7)]\n"), done.stderr[-3000:]
    assert "Traceback" not in done.stderr
