"""Counters and timings in OpenTelemetry, by its in-memory reader."""

from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk.metrics", reason="the package opentelemetry-sdk isn't installed")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from support.memory_table import WRITE, add, table
from tablelog import observe
from tablelog.opentelemetry import OpenTelemetryObserver


def metrics(reader: InMemoryMetricReader) -> dict[str, Any]:
    data = reader.get_metrics_data()
    assert data is not None
    (resource,) = data.resource_metrics
    (scope,) = resource.scope_metrics
    assert scope.scope.name == "tablelog"
    return {metric.name: metric for metric in scope.metrics}


def test_commits_and_conflicts_become_metrics() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    previous = observe.set_observer(OpenTelemetryObserver(provider))
    try:
        log = table()
        for name in "ab":
            log.transaction().commit([add(name)], WRITE)
        observe.counted("commit.conflicts", 2, observe.fields("t", version=7, outcome="MetadataChangedException"))
        log.checkpoint()
    finally:
        observe.set_observer(previous)
    collected = metrics(reader)
    provider.shutdown()

    attempts = collected["tablelog.commit.attempt.duration"]
    (point,) = attempts.data.data_points
    assert (attempts.unit, point.count) == ("s", 3)
    assert point.attributes == {"table": "memory:///t", "store": "MemoryLogStore", "outcome": "won"}

    conflicts = collected["tablelog.commit.conflicts"]
    (point,) = conflicts.data.data_points
    assert (conflicts.unit, point.value) == ("1", 2)
    assert point.attributes == {"table": "t", "outcome": "MetadataChangedException"}

    assert {"tablelog.refresh.duration", "tablelog.checkpoint.duration"} <= collected.keys()
