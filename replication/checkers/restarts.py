"""Check what a log is when its broker opens it again: an account of what a process leaves behind (I34).

What must be there is what was last seen of the log, and the high watermarks as of the last checkpoint that was due.
- A process that was killed loses nothing that it has written; one that lost power only what lies above the recovery
  point. A log ends where it ended, or there.
- After a clean stop log start and high watermark are the last ones, and all is flushed. After another end the high
  watermark is the one checkpointed last, within the log, or above it and not above the last one (a cut lowers the last
  one only); the recovery point is not above the last one.
- A disk that was emptied, and a replica that was moved away or whose directory has failed, are not looked at.

A leader may have raised the high watermark by the time of the look.

Source: Kafka core LogManager.loadLog, checkpointRecoveryOffsetsInDir and shutdown, and
ReplicaManager.checkpointHighWatermarks, 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.ids import BrokerId
from replication.checkers.observed_log import ObservedLog
from replication.checkers.view import NodeView, leader_role


class RestartChecker:
    """Keep the high watermarks that each broker has checkpointed."""

    def __init__(self) -> None:
        self._checkpointed: dict[tuple[BrokerId, int], int] = {}

    def note_checkpoint(self, node: NodeView) -> None:
        """Note that a broker was due to write its high watermark checkpoint."""
        if node.role is not None:
            for partition, role in node.role.roles.items():
                self._checkpointed[node.broker, partition] = role.log.log.high_watermark

    def forget(self, broker: BrokerId, partition: int) -> None:
        """Forget what was checkpointed of a log that its broker has deleted, or lost with its disk."""
        self._checkpointed.pop((broker, partition), None)

    def check(self, node: NodeView, partition: int, observed: ObservedLog, former: ObservedLog) -> Iterator[str]:
        """Yield what is wrong with a log that was opened again; `former` is the log as it was last."""
        log, last = observed.log.log, former.log.log
        name, end, last_end = f"broker {node.broker}", log.log_end_offset, len(former.entries)
        is_lossy = node.lossy_incarnation >= former.incarnation
        if is_lossy and log.recovery_point == end == log.log_start_offset == 0:
            self.forget(node.broker, partition)  # The disk was emptied, or nothing was flushed.
            return
        is_clean = former.incarnation in node.clean_stops
        # The log may not have been opened by a process that ended otherwise.
        is_trusted = all(each in node.clean_stops for each in range(former.incarnation, node.incarnation))
        checkpointed = self._checkpointed.get((node.broker, partition), 0)
        if is_clean:
            checkpointed = self._checkpointed[node.broker, partition] = last.high_watermark
        # A flush that was due for a segment since cut off leaves a recovery point above the log's end.
        if end > last_end or end < (min(last.recovery_point, last_end) if is_lossy else last_end):
            yield f"{name} has a log up to {end}; it ended at {last_end}, flushed up to {last.recovery_point}"
        high, least = log.high_watermark, max(min(checkpointed, end), log.log_start_offset)
        is_leader = leader_role(node, partition) is not None
        if high < least or (high > max(last.high_watermark, least) and not is_leader):
            yield f"{name} has the high watermark {high}; checkpointed was {checkpointed}, known {last.high_watermark}"
        if is_clean and log.log_start_offset != last.log_start_offset:
            yield f"{name} has a log from {log.log_start_offset} on; it began at {last.log_start_offset}"
        most = max(last.recovery_point, log.log_start_offset)
        if end > most < log.recovery_point and not is_trusted:
            yield f"{name} counts what is below {log.recovery_point} as flushed; it was {last.recovery_point}"
        if is_trusted and log.recovery_point != end:
            yield f"{name} counts what is below {log.recovery_point} of {end} as flushed after a clean stop"
