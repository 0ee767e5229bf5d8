"""Ctrl-C during Spark jobs: cancel the jobs, and keep the session usable."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ...clock import SystemClock
from ...settings.spark_own import INTERRUPT_ON_CANCEL
from .connection.gateway import Gateway
from .connection.sessions import is_classic

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
    """Within the context, this thread's Spark jobs have the yielded tag, and Ctrl-C raises `KeyboardInterrupt` at once.

    A cancelled task that writes may only end if Spark interrupts its thread. Spark does so by default, but not after
    a call of `SparkContext.setJobGroup`; so the setting is changed within the context.
    """
    tag = f"{purpose}-{uuid4()}"
    if not is_classic(spark):
        spark.addTag(tag)
        try:
            yield tag
        finally:
            spark.removeTag(tag)
        return
    context = spark.sparkContext
    original = context.getLocalProperty(_INTERRUPTS)
    context.addJobTag(tag)
    if original == "false":
        context.setLocalProperty(_INTERRUPTS, "true")
    try:
        with _raised(context, tag):
            yield tag
    finally:
        context.removeJobTag(tag)
        if original == "false":
            context.setLocalProperty(_INTERRUPTS, original)


@contextmanager
def _raised(context: Any, tag: str) -> Iterator[None]:
    """Within the context, Ctrl-C cancels the jobs with a tag and raises `KeyboardInterrupt` at once.

    This replaces PySpark's handler, which cancels all jobs over the connection that Ctrl-C interrupted. On Spark 4.1
    that fails with a Py4JError, and the jobs continue. A handler of another library is not replaced.
    """
    handler = signal.getsignal(signal.SIGINT)
    if (
        threading.current_thread() is not threading.main_thread()
        or getattr(handler, "__module__", None) != "pyspark.core.context"
    ):
        yield
        return

    def interrupt(*_: object) -> None:
        # In a new thread, which has its own connection: PySpark's code may wait for the jobs while this error passes.
        threading.Thread(target=_cancel, args=(context, tag, SystemClock()), daemon=True).start()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def stop(spark: "SparkSession", tag: str) -> bool:
    """After a `KeyboardInterrupt`: cancel the Spark jobs with a tag and wait until their tasks end.

    The JVM still sends the reply to the interrupted call on this thread's connection, and the next call would read
    that reply as its own. So the connection is closed, and the thread gets a new one. Spark's local properties of this
    thread are lost with it. Returns False if tasks still run after 20 s.
    """
    if is_classic(spark):
        _reconnect(spark)
    return settle(spark, tag)


def settle(spark: "SparkSession", tag: str) -> bool:
    """Cancel the Spark jobs with a tag and wait until their tasks end, including the tasks of failed jobs.

    Returns False if tasks still run after 20 s.
    """
    if not is_classic(spark):
        return _interrupted_on_server(spark, tag)
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
    logger.warning("the cancelled Spark jobs %s still run tasks after %d s", tag, _PATIENCE_S)
    return False


def _interrupted_on_server(spark: "SparkSession", tag: str) -> bool:
    """Cancel the operations with a tag on the server of Spark Connect; False if it can't be reached."""
    try:
        spark.interruptTag(tag)
    except Exception as error:
        logger.warning("the operations %s could not be cancelled on the server: %s", tag, error)
        return False
    return True


def is_behind(error: BaseException | None, handled: BaseException | None = None) -> bool:
    """Whether Ctrl-C caused the error. PySpark and Py4J may raise another error while they handle the interrupt.

    `handled` is the exception that the caller was handling before: a command that runs inside of
    `except KeyboardInterrupt` wasn't interrupted itself.
    """
    while error is not None and error is not handled:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False


def _cancel(context: Any, tag: str, clock: SystemClock) -> None:
    """Cancel the jobs. Tries again, because the JVM sometimes closes the first connection after an interrupted one."""
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
    """Stages with running tasks, as Spark's SparkStageInfo; for a job that isn't marked as ended, all its stages."""
    tracker = context._jsc.sc().statusTracker()
    stages = []
    for job in tracker.getJobIdsForTag(tag):
        info = tracker.getJobInfo(job)
        if not info.isDefined():
            continue
        is_running = info.get().status().toString() == "RUNNING"
        for stage_id in info.get().stageIds():
            stage = tracker.getStageInfo(stage_id)
            if stage.isDefined() and (is_running or stage.get().numActiveTasks() > 0):
                stages.append(stage.get())
    return stages


def _interrupt_tasks(context: Any, stage: Any) -> None:
    """Interrupt the running tasks of a stage again, because the first interrupt may have been lost.

    Without its native library Hadoop runs a `chmod` process for each local file, and discards an interrupt that comes
    while it waits for the process. A task that then only computes and writes doesn't notice that it is cancelled.
    """
    jvm, scala = context._jvm, context._jsc.sc()
    api = jvm.org.apache.spark.status.api.v1
    statuses = jvm.java.util.Collections.singletonList(api.TaskStatus.RUNNING)
    tasks = scala.statusStore().taskList(
        stage.stageId(), stage.currentAttemptId(), 0, _TASKS, api.TaskSorting.ID, statuses
    )
    for i in range(tasks.size()):
        scala.killTaskAttempt(tasks.apply(i).taskId(), True, "cancelled")
