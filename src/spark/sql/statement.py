"""A statement that Spark's parser has parsed, with the values of its parameters in place."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession

from ...engine.jvm import plans
from ...engine.jvm.connection.gateway import Gateway
from ...engine.jvm.statements import statements

LogicalPlan: TypeAlias = Any
"""A plan of the JVM, unresolved as Spark's parser made it."""
Expression: TypeAlias = Any
"""An expression of the JVM, unresolved."""


@dataclass(frozen=True)
class Statement:
    """One statement of `spark.sql`. `text` is what the user wrote, for messages.

    `plan` has the values of the parameters `args` in place of the markers.
    """

    spark: SparkSession
    text: str
    plan: LogicalPlan
    args: Any = None

    @property
    def kind(self) -> str:
        """The class of the plan."""
        return statements.kind_of(self.plan)

    def column(self, expression: Expression) -> Column:
        """An expression of the statement as a Column, for the commands."""
        return Gateway.of(self.spark).column(expression)

    def frame(self, plan: LogicalPlan) -> DataFrame:
        """The DataFrame of a query within the statement. Raises Spark's AnalysisException."""
        return plans.frame_of(self.spark, plan)
