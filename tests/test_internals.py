"""`engine/jvm` is the only folder that uses internals of Spark and Py4J, and its registry lists all of them."""

import ast
import re
from collections.abc import Iterator
from functools import partialmethod
from pathlib import Path

import pytest

from tablelog.engine.jvm.connection import environment
from tablelog.engine.jvm.registry import patching
from tablelog.engine.jvm.registry.jvm_internals import JVM
from tablelog.engine.jvm.registry.python_internals import PATCHES, PYTHON, SETTINGS, JvmInternal, PythonInternal
from tablelog.errors import UnsupportedEnvironmentError
from tablelog.settings import spark_own

SOURCE = Path(__file__).resolve().parents[1] / "src"
DOOR = SOURCE / "engine" / "jvm"
OF_CONNECT = SOURCE / "engine" / "connect" / "client.py"  # tests/connect checks what it uses
REGISTRY = ("python_internals.py", "jvm_internals.py")

PUBLIC = frozenset(
    {
        "pyspark",
        "pyspark.errors",
        "pyspark.logger",
        "pyspark.sql",
        "pyspark.sql.conf",
        "pyspark.sql.datasource",
        "pyspark.sql.functions",
        "pyspark.sql.streaming.datasource",
        "pyspark.sql.types",
    }
)
"""Modules of PySpark that its documentation names."""
NAMES = frozenset({"DataFrame", "Row", "SparkSession", "Column", "StorageLevel", "TaskContext", "Window", "functions"})
"""What may be imported from `pyspark` and `pyspark.sql` themselves, beside exceptions and types."""
INTERNAL = frozenset(one.attribute for one in PYTHON if one.attribute.startswith("_")) - {"_spark", "_df", "_gateway"}
"""Names that are never an attribute of ours."""
CLASS = re.compile(r"\borg\.apache\.spark\.(?!sql\.delta\.)(\w+\.)*[A-Z]\w*|\bpy4j\.\w|\bscala\.[A-Zr]")


def violations(text: str) -> Iterator[str]:
    """What a module outside of `engine/jvm` must not do; the kinds are those of `test_the_lint_finds_each_kind`."""
    tree = ast.parse(text)
    own, imported, docstrings = set(), set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            own.update(one.id for one in targets if isinstance(one, ast.Name))
            own.update(one.attr for one in targets if isinstance(one, ast.Attribute) and _is_name(one.value, "self"))
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("pyspark"):
            imported.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(node.value)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import):
            yield from (f"{line}: import {one.name}" for one in node.names if not _is_public(one.name))
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [one.name for one in node.names] if node.module in ("pyspark", "pyspark.sql") else []
            if not _is_public(node.module or "") or any(name not in NAMES for name in names):
                yield f"{line}: from {node.module} import {', '.join(one.name for one in node.names)}"
        elif isinstance(node, ast.Attribute):
            private = node.attr.startswith("_") and not node.attr.startswith("__")
            if node.attr in INTERNAL or (private and node.attr not in own and not _is_inherited(node)):
                yield f"{line}: {ast.unparse(node)}"
            elif isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id in imported:
                yield f"{line}: {ast.unparse(node)} is assigned"
            elif re.search(r"\bjvm\.(org\.apache\.(spark|parquet)|scala|py4j)$", ast.unparse(node)):
                yield f"{line}: {ast.unparse(node)}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
            target, name = node.args[0], node.args[1]
            if node.func.id == "setattr" and isinstance(target, ast.Name) and target.id in imported:
                yield f"{line}: {ast.unparse(node)}"
            named = str(name.value) if isinstance(name, ast.Constant) else ""
            if node.func.id in ("getattr", "hasattr", "setattr") and re.match(r"_[^_]", named):
                yield f"{line}: {ast.unparse(node)}"
        elif isinstance(node, ast.Constant) and node not in docstrings and CLASS.search(str(node.value)):
            yield f"{line}: {node.value!r}"


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_inherited(node: ast.Attribute) -> bool:
    """An attribute of our own object that another module of ours defines: not one of the names of PySpark's."""
    declared = {one.attribute for one in PYTHON} | {"_set_opts", "_sc", "_jconf"}
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls") and node.attr not in declared


def _is_public(module: str) -> bool:
    package = module.partition(".")[0]
    return package != "py4j" and (package != "pyspark" or module in PUBLIC)


def test_no_other_folder_knows_internals() -> None:
    # import-linter keeps the other folders from pyspark and py4j as a whole.
    found = {
        f"{path.relative_to(SOURCE)}:{one}"
        for folder in ("spark", "dml", "engine")
        for path in sorted((SOURCE / folder).rglob("*.py"))
        if not path.is_relative_to(DOOR) and path != OF_CONNECT
        for one in violations(path.read_text())
    }
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        "from py4j.protocol import Py4JError",
        "import py4j",
        "import pyspark.sql.classic.dataframe",
        "from pyspark.sql.readwriter import DataFrameReader",
        "from pyspark.errors.exceptions import captured",
        "from pyspark import cloudpickle",
        "from pyspark import SparkContext",
        "df._jdf.queryExecution()",
        "spark.sparkContext._jsc.sc()",
        "def f(self): return self._jdf",
        "def f(self): return self._spark",
        "writer.mode(mode)._set_opts(a=1)",
        "getattr(spark, '_jsparkSession', None)",
        "from pyspark.sql import DataFrame\nDataFrame.explain = None",
        "from pyspark.sql import DataFrame\nsetattr(DataFrame, 'explain', None)",
        "gateway.jvm.org.apache.spark.sql.types.DataTypes",
        "self._gateway.jvm.scala.Option",
        "NAME = 'org.apache.spark.sql.catalyst.InternalRow'",
    ],
)
def test_the_lint_finds_each_kind(text: str) -> None:
    assert list(violations(text))


def test_the_lint_lets_the_rest_pass() -> None:
    text = "from pyspark.sql import DataFrame, functions as F\nclass A:\n  def __init__(self, b): self._b = b._b\n"
    assert not list(violations(text + '"""`org.apache.spark.sql.Column`"""\nKEY = "org.apache.spark.version"\n'))


# --- the registry -------------------------------------------------------------------------------------------------


def text_of(folder: Path) -> str:
    files = [*folder.rglob("*.py"), *folder.rglob("*.java")]
    return "\n".join(path.read_text() for path in sorted(files) if path.name not in REGISTRY)


def test_every_entry_is_used() -> None:
    door, engine = text_of(DOOR), text_of(SOURCE / "engine")
    unused = [one.name for one in PYTHON if not re.search(rf"\b{re.escape(one.attribute)}\b", door)]
    for one in JVM:
        simple = one.name.rpartition(".")[2]
        reached = one.members or simple in ("StructType", "Table")  # by a call that gives such an object
        if not re.search(rf"\b{re.escape(simple)}(?!\w)", engine) and not reached:
            unused.append(one.name)
        unused += [
            f"{one.name}.{member}"
            for member in one.members
            if not re.search(rf"[.\"=(, ]{re.escape(member)}(?!\w)", engine)
        ]
    unused += [name for name, value in vars(spark_own).items() if value in SETTINGS and name not in door]
    assert not unused


CHAIN = re.compile(r"\bjvm\.((?:org\.apache\.(?:spark|parquet)|scala)\b[\w.]*)")
PACKAGES = {
    "self.expressions": "org.apache.spark.sql.catalyst.expressions",
    "gateway.expressions": "org.apache.spark.sql.catalyst.expressions",
    "self._classes": "org.apache.spark.sql.catalyst",
}


def classes_named(function: ast.AST) -> Iterator[str]:
    """The classes of the JVM that a function names by attributes, also those of a package that it holds in a name."""
    known = dict(PACKAGES)
    pairs = [one for one in ast.walk(function) if isinstance(one, ast.Assign)]
    for one in pairs:
        target, value = one.targets[0], one.value
        tuples = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
        both = zip(target.elts, value.elts, strict=True) if tuples else ()
        for name, of in (*both, (target, value)):
            text = _without_alias(ast.unparse(of), known)
            if CHAIN.search(text) and isinstance(of, ast.Attribute):
                known[ast.unparse(name)] = CHAIN.findall(text)[0]
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute):
            yield from CHAIN.findall(_without_alias(ast.unparse(node), known))


def _without_alias(text: str, known: dict[str, str]) -> str:
    for alias, package in known.items():
        if text.startswith(f"{alias}."):
            return f"jvm.{package}{text.removeprefix(alias)}"
    return text


def test_every_class_that_is_named_has_an_entry() -> None:
    declared = {one.name for one in JVM}
    named = set()
    for path in DOOR.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                named.update(classes_named(node))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and path.name not in REGISTRY:
                named.update(re.findall(r"^((?:org\.apache\.spark|py4j)\.[\w.$]+)$", node.value))
    classes = {name for name in named if re.search(r"\.[A-Z]", name)}
    assert len(classes) > 60
    unknown = {
        name
        for name in classes
        if not any(name == one or name.startswith(f"{one}.") or f"{name}$" == one for one in declared)
    }
    assert not unknown


def test_every_patch_is_applied_by_whoever_is_named() -> None:
    for one in PATCHES:
        module = SOURCE / f"{one.by}.py"
        assert one.attribute in module.read_text(), one.name


def test_only_what_is_declared_can_be_patched() -> None:
    with pytest.raises(KeyError):
        patching.apply({"DataFrame.count": lambda original: original})


def test_patches_are_put_back() -> None:
    from pyspark.sql.readwriter import DataFrameReader

    before = dict(vars(DataFrameReader))
    applied = patching.apply({"DataFrameReader.load": partialmethod})
    assert vars(DataFrameReader) != before
    assert applied.has(vars(DataFrameReader)["load"])
    patching.remove(applied)
    assert dict(vars(DataFrameReader)) == before


# --- the check ----------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    environment._missing_here.cache_clear()
    monkeypatch.setattr(environment, "_missing_here", lambda version: tuple(environment.missing_in_python(version)))
    return monkeypatch


def test_this_pyspark_has_every_python_internal() -> None:
    import pyspark

    assert list(environment.missing_in_python(environment.minor_of(pyspark.__version__))) == []


@pytest.mark.parametrize(
    "one",
    [
        PythonInternal("pyspark.sql.classic.nowhere", "", "f", "tests"),
        PythonInternal("pyspark.sql.readwriter", "NoReader", "_jreader", "tests"),
        PythonInternal("pyspark.sql.readwriter", "DataFrameReader", "_no_reader", "tests"),
    ],
)
def test_a_missing_python_internal_gives_one_message(fresh: pytest.MonkeyPatch, one: PythonInternal) -> None:
    declared = (*PYTHON, one)
    fresh.setattr(
        environment,
        "_missing_here",
        lambda version: tuple(environment.missing_in_python(version, declared)),
    )
    with pytest.raises(UnsupportedEnvironmentError) as refused:
        environment.check_version("4.3.0")
    text = str(refused.value)
    assert f"{one.name} (tests)" in text
    assert "Spark 4.3.0" in text
    assert "4.1, 4.2, 4.3" in text
    assert text.count("(") == 1, "and nothing else is missing"


def test_an_internal_of_other_versions_is_not_missed() -> None:
    one = PythonInternal("pyspark.sql.readwriter", "DataFrameReader", "_no_reader", "tests", ("4.1",))
    assert list(environment.missing_in_python("4.1", [one]))
    assert not list(environment.missing_in_python("4.3", [one]))


def test_a_long_list_is_cut(fresh: pytest.MonkeyPatch) -> None:
    fresh.setattr(environment, "_missing_here", lambda version: tuple(f"name{i} (use)" for i in range(40)))
    with pytest.raises(UnsupportedEnvironmentError, match=r"name11 \(use\), and 28 more"):
        environment.check_version("4.3.0")


class FakeSession:
    """A session that says its version, and fails where its JVM is asked."""

    def __init__(self, version: str) -> None:
        self.version = version

    @property
    def sparkContext(self) -> object:
        raise AssertionError("the JVM was asked")


@pytest.mark.parametrize("version", ["4.1.0", "4.2.1", "4.3.0"])
def test_a_release_of_a_supported_version_asks_its_jvm_for_nothing(version: str) -> None:
    environment.check_environment(FakeSession(version))  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["4.4.0", "4.3.0-vendor-1", "4.3.0-SNAPSHOT", "3.5.8"])
def test_other_versions_are_compared_with_the_whole_registry(version: str) -> None:
    with pytest.raises(AssertionError, match="the JVM was asked"):
        environment.check_environment(FakeSession(version))  # type: ignore[arg-type]


def test_what_a_new_version_lacks_in_its_jvm_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = JvmInternal("org.apache.spark.sql.Gone", "tests")
    monkeypatch.setattr(environment, "_missing_of_session", lambda spark: [f"{gone.name} ({gone.use})"])
    with pytest.raises(UnsupportedEnvironmentError) as refused:
        environment.check_environment(FakeSession("4.4.0"))  # type: ignore[arg-type]
    text = str(refused.value)
    assert "supports Spark 4.1, 4.2, 4.3; this session runs Spark 4.4.0" in text
    assert "lacks internals of Spark that tablelog uses: org.apache.spark.sql.Gone (tests)" in text


def test_a_build_of_a_supported_version_that_has_everything_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_missing_of_session", lambda spark: [])
    environment.check_environment(FakeSession("4.3.0-vendor-1"))  # type: ignore[arg-type]
    with pytest.raises(UnsupportedEnvironmentError, match=r"runs Spark 4\.4\.0: install a release of one"):
        environment.check_environment(FakeSession("4.4.0"))  # type: ignore[arg-type]
