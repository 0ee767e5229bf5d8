"""The filters of a file scan, from Spark's physical plan."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import UnsupportedEnvironmentError
from .connection import frames
from .connection.gateway import Gateway, JavaObject
from .registry.classes import class_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class PlannedScan:
    """The filters (Scala `Seq`s of expressions) of a scan.

    `complete`: the partition filters of the scan are the whole condition. `understood`: only ordinary filters are
    evaluated after the scan, and no Python function, for example.
    """

    partition_filters: JavaObject
    data_filters: JavaObject
    complete: bool
    understood: bool


def planned_scan(filtered: "DataFrame") -> PlannedScan | None:
    """The filters with which Spark scans a filtered relation; `None` if the optimizer proved that no row can match."""
    node = frames.executed_plan(filtered)
    complete, understood = True, True
    while True:
        name = class_name(node)
        if name == "FileSourceScanExec":
            return PlannedScan(node.partitionFilters(), node.dataFilters(), complete, understood)
        if name in ("LocalTableScanExec", "EmptyRelationExec"):
            return None
        if name == "FilterExec":
            complete = False
        elif name not in ("WholeStageCodegenExec", "InputAdapter", "ColumnarToRowExec", "ProjectExec"):
            complete = understood = False
        children = Gateway.elements(node.children())
        if name == "AdaptiveSparkPlanExec":
            children = [node.executedPlan()]
        if len(children) != 1:
            raise UnsupportedEnvironmentError(f"the plan of a filtered table has a {name}, which isn't expected")
        node = children[0]


def without_dynamic_pruning(gateway: Gateway, filters: JavaObject) -> JavaObject:
    """The filters (a Scala `Seq`) whose values are known before the query runs."""
    return gateway.seq(each for each in gateway.elements(filters) if "DynamicPruning" not in class_name(each))
