"""ALTER TABLE DROP FEATURE: removes the traces of a feature from the newest version, then the feature itself from the
protocol.

Older versions may still need the feature. Either new checkpoints are written before the drop, so that no reader needs
the versions below, and the checkpoints are protected (`checkpointProtection`). Or, with `truncate_history`, the drop
waits until the versions that use the feature have expired, and deletes them.
"""

import logging
from dataclasses import replace

from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.protocol import properties, row_tracking
from ...core.protocol.actions import Action
from ...core.table import feature_removal
from ...core.table.feature_removal import PROTECTED_BELOW, PROTECTION, Plan
from ...core.table.snapshot import Snapshot
from ...core.txn.operation import Operation
from ...core.txn.transaction import Committed
from ...errors import DeltaConcurrentModificationException, FeatureInHistoryError, ProtocolChangedException
from ..command.command import PLAIN, Command, CommitOptions, command_scope
from . import feature_traces

logger = logging.getLogger(__name__)

_BARRIERS = 3
"""The number of checkpoints to write: a reader that can't read the newest checkpoint tries a few older ones."""
_ATTEMPTS = 10
_MINUTE_MS = 60_000


def drop_feature(
    spark: SparkSession, log: DeltaLog, name: str, *, truncate_history: bool = False, options: CommitOptions = PLAIN
) -> Committed:
    """Drop a feature from the table, in several commits; the last one lowers the protocol.

    Raises FeatureInHistoryError if older versions must expire first (then run it again), InvalidArgumentError or
    UnsupportedFeatureError if the feature can't be dropped, and the conflict errors.
    """
    with command_scope(spark, "DROP FEATURE", log.table):
        snapshot = Command.on(spark, log, options).snapshot
        plan = feature_removal.plan(snapshot, name, truncates=truncate_history)
        changed = feature_traces.remove(spark, log, plan, options)
        if plan.name == PROTECTION and changed:
            _unprotect(log)
        protects = plan.removal.needs_history and not plan.truncates
        if protects:
            for _ in range(_BARRIERS):
                _checkpoint(log)
        elif plan.removal.needs_history:
            _checkpoint(log)
            _truncate(log, plan, changed)
        committed = _lowered(spark, log, plan, protects, options)
        if protects:
            try:
                log.checkpoint()
            except Exception:
                logger.warning(
                    "%s: version %d, without the feature %s, is committed, but its checkpoint wasn't written: readers "
                    "that don't support the feature need one. DeltaLog.checkpoint() writes it",
                    log.table, committed.version, plan.name, exc_info=True,
                )  # fmt: skip
        return committed


def _lowered(spark: SparkSession, log: DeltaLog, plan: Plan, protects: bool, options: CommitOptions) -> Committed:
    """Commit the lowered protocol; retry on each new version while nothing in the table needs the feature."""
    parameters = {"featureName": plan.name, "truncateHistory": plan.truncates}
    operation = Operation("DROP FEATURE", parameters, lowers_protocol=True)
    for attempt in range(_ATTEMPTS):
        command = Command.on(spark, log, options)
        snapshot, txn = command.snapshot, command.txn
        if not plan.removal.clean(snapshot):
            raise ProtocolChangedException(
                f"the feature {plan.name} of {log.table} wasn't dropped: another writer started to use it again. "
                "Retry the command",
                version=snapshot.version,
            )
        kept = {k: v for k, v in snapshot.metadata.configuration.items() if k not in plan.removal.keys}
        if protects:
            kept[PROTECTED_BELOW] = str(snapshot.version + 1)
        txn.set_protocol(feature_removal.lowered(snapshot.protocol, plan.name, protects=protects))
        txn.set_metadata(replace(snapshot.metadata, configuration=kept))
        actions: list[Action] = []
        if plan.name == row_tracking.FEATURE and row_tracking.DOMAIN in snapshot.domain_metadata:
            actions.append(replace(snapshot.domain_metadata[row_tracking.DOMAIN], removed=True))
        try:
            return command.commit(actions, operation)
        except DeltaConcurrentModificationException:
            if attempt + 1 == _ATTEMPTS:
                raise
            logger.info("%s: another commit came before the drop of %s: trying again", log.table, plan.name)
    raise AssertionError


# --- the history --------------------------------------------------------------------------------------------------


def _checkpoint(log: DeltaLog) -> None:
    """Make an empty commit and write a checkpoint of it."""
    log.transaction().commit([], Operation("Empty Commit"))
    log.checkpoint()


def _truncate(log: DeltaLog, plan: Plan, changed: bool) -> None:
    """Delete the expired versions. Raises FeatureInHistoryError if remaining versions use the feature."""
    snapshot = log.snapshot()
    if not changed:
        _clean_up(log, snapshot)
    if changed or _in_history(log, plan, snapshot):
        raise FeatureInHistoryError(
            f"the newest version of {log.table} doesn't use the feature {plan.name}, but older versions in the log "
            f"do. Drop the feature again when these have expired ({_waiting(snapshot)}), or drop it without "
            "truncateHistory now",
            condition="DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
            parameters={"feature": plan.name},
        )


def _clean_up(log: DeltaLog, snapshot: Snapshot) -> None:
    log.clean_up(snapshot, retention_ms=_retention_ms(snapshot), truncate_to_ms=_MINUTE_MS)


def _retention_ms(snapshot: Snapshot) -> int:
    return int(properties.get(snapshot.metadata.configuration, "dropFeatureTruncateHistory.retentionDuration"))


def _waiting(snapshot: Snapshot) -> str:
    hours = _retention_ms(snapshot) / 3_600_000
    return f"delta.dropFeatureTruncateHistory.retentionDuration, {hours:g} hours"


def _in_history(log: DeltaLog, plan: Plan, snapshot: Snapshot) -> bool:
    uses = plan.removal.uses
    listing = log.reader.list(0)
    first = listing.earliest
    if uses is None or first is None:
        return first is None
    if not plan.removal.clean(log.snapshot(first)):
        return True
    versions = [version for version in listing.commits if first < version <= snapshot.version]
    return any(uses(action) for version in sorted(versions) for action in log.reader.each_action(version))


def _unprotect(log: DeltaLog) -> None:
    """Delete the protected versions, then unset the property. Raises FeatureInHistoryError if they haven't expired."""
    snapshot = log.snapshot()
    below = int(properties.get(snapshot.metadata.configuration, "requireCheckpointProtectionBeforeVersion"))
    if not _gone_below(log, below):
        _checkpoint(log)
        _clean_up(log, log.snapshot())
        if not _gone_below(log, below):
            raise FeatureInHistoryError(
                f"the log of {log.table} still has versions below {below}, whose checkpoints are protected. Drop the "
                f"feature again when they have expired ({_waiting(snapshot)})",
                condition="DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
            )
    feature_traces.change_properties(log, unset=[PROTECTED_BELOW])


def _gone_below(log: DeltaLog, version: int) -> bool:
    if version <= 0:
        return True
    listing = log.reader.list(0)
    first = listing.earliest
    return first is not None and first >= version and min(listing.commits, default=version) >= version
