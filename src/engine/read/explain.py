"""Describes which files a query plan reads; `DataFrame.explain` shows the filters, but not the skipped files."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..jvm.connection.frames import executed_plan
from ..jvm.connection.gateway import Gateway, JavaObject
from ..jvm.registry.classes import class_name
from ..jvm.scans import without_dynamic_pruning
from .file_index import index_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TITLE = "== Files read of Delta tables =="


def describe(frame: "DataFrame") -> str:
    """One line per table scan: the version, and how many files remain after pruning by partitions and statistics.

    `""` if the plan scans no table. Dynamic partition pruning isn't counted: it happens while the query runs.
    """
    gateway = Gateway.of(frame.sparkSession)
    lines: list[str] = []
    for scan in _scans(gateway, executed_plan(frame)):
        index = index_of(scan.relation().location())
        if index is None:
            continue
        static = without_dynamic_pruning(gateway, scan.partitionFilters())
        plan, _ = index.plan(static, without_dynamic_pruning(gateway, scan.dataFilters()))
        line = f"tablelog[{index.table}, version {plan.version}, {plan.files} of {plan.total} files]"
        line += f" {plan.size} bytes; {plan.total - plan.after_partitions} files pruned by partition values, "
        line += f"{plan.after_partitions - plan.files} by statistics"
        if static.size() < scan.partitionFilters().size():
            line += ", more by dynamic partition pruning"
        lines.append(line)
    return "\n".join([_TITLE, *lines]) if lines else ""


def _scans(gateway: Gateway, node: JavaObject) -> Iterator[JavaObject]:
    """The file scans of a physical plan, including subqueries and adaptive stages."""
    name = class_name(node)
    if name == "FileSourceScanExec":
        yield node
    elif name == "AdaptiveSparkPlanExec":
        yield from _scans(gateway, node.executedPlan())
        return
    elif name.endswith("QueryStageExec"):
        yield from _scans(gateway, node.plan())
        return
    elif name == "InMemoryTableScanExec":
        return  # cached data: no file is read
    for child in (*gateway.elements(node.subqueries()), *gateway.elements(node.children())):
        yield from _scans(gateway, child)
