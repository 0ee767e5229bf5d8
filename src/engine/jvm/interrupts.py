"""Ctrl-C while Spark works: end the jobs, and make the session usable again."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ...clock import SystemClock
from ...settings.spark_own import INTERRUPT_ON_CANCEL
from .gateway import Gateway

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_INTERRUPTS = INTERRUPT_ON_CANCEL.key
_PATIENCE_S = 20.0
_AGAIN_S = 1.0
_PAUSE_S = 0.05
_TRIES = 5
_TASKS = 10_000


@contextmanager
def tagged(spark: "SparkSession", purpose: str) -> Iterator[str]:
    """Inside, the Spark jobs of this thread bear the tag that is given, and Ctrl-C is a `KeyboardInterrupt` at once.

    A cancelled task ends only where its thread is interrupted, one that writes may run on without. That is what Spark
    does by default, but not once `SparkContext.setJobGroup` was called.
    """
    tag = f"{purpose}-{uuid4()}"
    context = spark.sparkContext
    before = context.getLocalProperty(_INTERRUPTS)
    context.addJobTag(tag)
    if before == "false":
        context.setLocalProperty(_INTERRUPTS, "true")
    try:
        with _raised(context, tag):
            yield tag
    finally:
        context.removeJobTag(tag)
        if before == "false":
            context.setLocalProperty(_INTERRUPTS, before)


@contextmanager
def _raised(context: Any, tag: str) -> Iterator[None]:
    """Inside, Ctrl-C cancels the jobs with a tag and is a `KeyboardInterrupt` at once, and `stop` ends them.

    PySpark's own handler first cancels all jobs, over the connection that it has interrupted. On Spark 4.1 that fails,
    and what comes out is a Py4JError, with the jobs running on. Somebody else's handler stays.
    """
    handler = signal.getsignal(signal.SIGINT)
    if (
        threading.current_thread() is not threading.main_thread()
        or getattr(handler, "__module__", None) != "pyspark.core.context"
    ):
        yield
        return

    def interrupt(*_: object) -> None:
        # By a thread, and so by a connection, of its own: what PySpark does on its way out may wait for the jobs.
        threading.Thread(target=_cancel, args=(context, tag, SystemClock()), daemon=True).start()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def stop(spark: "SparkSession", tag: str) -> bool:
    """Cancel the Spark jobs with a tag and wait for their tasks to end; to be called after `KeyboardInterrupt`.

    The interrupted call is still being answered on the thread's own connection to the JVM, where the next call would
    take that answer for its own, and wait for it first: so that connection is closed here, and the thread gets a new
    one (with it go what this thread had set as local properties of Spark). False when tasks still ran after 20 s.
    """
    _reconnect(spark)
    return settle(spark, tag)


def settle(spark: "SparkSession", tag: str) -> bool:
    """Cancel the Spark jobs with a tag and wait for their tasks to end, those of a failed job too.

    False when tasks still ran after 20 s.
    """
    context: Any = spark.sparkContext
    clock = SystemClock()
    _cancel(context, tag, clock)
    again = clock.monotonic() + _AGAIN_S
    until = clock.monotonic() + _PATIENCE_S
    while clock.monotonic() < until:
        stages = _running(context, tag)
        if not stages:
            return True
        if clock.monotonic() >= again:
            for stage in stages:
                _interrupt_tasks(context, stage)
            again = clock.monotonic() + _AGAIN_S
        clock.sleep(_PAUSE_S)
    logger.warning("the cancelled Spark jobs %s still ran tasks after %d s", tag, _PATIENCE_S)
    return False


def is_behind(error: BaseException | None, handled: BaseException | None = None) -> bool:
    """Whether Ctrl-C is behind the error: PySpark and Py4J may cover it by what they meet while they handle it.

    `handled` is what the caller was handling before: a command that is run in `except KeyboardInterrupt` wasn't
    interrupted itself.
    """
    while error is not None and error is not handled:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False


def _cancel(context: Any, tag: str, clock: SystemClock) -> None:
    """Cancel the jobs. Now and then the JVM hangs up on the first connection that follows one that was cut."""
    from py4j.protocol import Py4JNetworkError

    for attempt in range(_TRIES):
        try:
            context.cancelJobsWithTag(tag)
            return
        except Py4JNetworkError:
            if attempt == _TRIES - 1:
                raise
            clock.sleep(_PAUSE_S)


def _reconnect(spark: "SparkSession") -> None:
    client = Gateway.of(spark).py4j._gateway_client
    current = getattr(client, "get_thread_connection", lambda: None)()
    if current is not None:
        current.close()


def _running(context: Any, tag: str) -> list[Any]:
    """Stages that still have tasks, as Spark's SparkStageInfo; all stages of a job that isn't marked as ended yet."""
    tracker = context._jsc.sc().statusTracker()
    stages = []
    for job in tracker.getJobIdsForTag(tag):
        info = tracker.getJobInfo(job)
        if not info.isDefined():
            continue
        runs = info.get().status().toString() == "RUNNING"
        for stage in info.get().stageIds():
            found = tracker.getStageInfo(stage)
            if found.isDefined() and (runs or found.get().numActiveTasks() > 0):
                stages.append(found.get())
    return stages


def _interrupt_tasks(context: Any, stage: Any) -> None:
    """Interrupt the running tasks of a stage once more, for the first interrupt may have been lost.

    Hadoop starts a `chmod` for each local file without its native library, and forgets an interrupt that comes while it
    waits for that; what then only computes and writes never notices that it was to end.
    """
    jvm, scala = context._jvm, context._jsc.sc()
    api = jvm.org.apache.spark.status.api.v1
    statuses = jvm.java.util.Collections.singletonList(api.TaskStatus.RUNNING)
    tasks = scala.statusStore().taskList(
        stage.stageId(), stage.currentAttemptId(), 0, _TASKS, api.TaskSorting.ID, statuses
    )
    for i in range(tasks.size()):
        scala.killTaskAttempt(tasks.apply(i).taskId(), True, "cancelled")
