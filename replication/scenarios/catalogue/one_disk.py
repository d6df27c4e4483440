"""Stories of one machine's disk, told with a real log: S18.

It decides nothing but the steps.

Source: each story names its own.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from broker.clock import ManualClock
from broker.ids import BrokerEpoch, LeaderEpoch, Offset
from broker.units import MIB, TimeMs
from log.batches import batches_in
from log.build import build_batch
from log.build_spec import BatchSpec
from log.log_config import LogConfig
from log.partition_log import PartitionLog
from log.record import Record
from log.recovery import LastShutdown
from log.storage import MemoryStorage
from replication.fencing import StopProof, proof_at_stop, proof_while_loading
from replication.rules import CURRENT, Rules, without
from replication.scenarios.tale import Fact, Tale
from replication.simulation.trace import Tell

_NOW: Final = TimeMs(1)
_DIRECTORY: Final = "topic-0"
_TORN_BYTES: Final = 10


def _batch(value: int) -> bytes:
    return build_batch(BatchSpec(), (Record(Offset(0), _NOW, None, bytes([value])),))


def _stopped_while_recovering(tell: Tell, rules: Rules) -> tuple[Fact, ...]:
    """Tear a log's end off, stop the broker while it recovers, start it again and go on writing."""
    storage = MemoryStorage(ManualClock())
    log = PartitionLog.open(storage, _DIRECTORY, LogConfig(), LastShutdown(), now_ms=_NOW)
    for value in range(3):
        log.append_as_leader(_batch(value), leader_epoch=LeaderEpoch(0), now_ms=_NOW)
    path = f"{_DIRECTORY}/{0:020d}.log"
    storage.open(path).truncate(storage.size_bytes(path) - _TORN_BYTES)
    tell("records 0, 1 and 2 are written; power fails, and the end of the third is torn off")
    found = proof_while_loading(StopProof(), rules)
    found = proof_at_stop(BrokerEpoch(7), logs_recovered=False, rules=rules)
    is_clean = found.epoch is not None
    tell(f"the broker starts, and is told to stop before its logs are recovered; clean stop noted: {is_clean}")
    log = PartitionLog.open(storage, _DIRECTORY, LogConfig(), LastShutdown(clean=is_clean), now_ms=_NOW)
    tell(f"it starts again; the log ends at {log.log_end_offset}, its file at {storage.size_bytes(path)}")
    written = log.append_as_leader(_batch(9), leader_epoch=LeaderEpoch(1), now_ms=_NOW)
    tell(f"another record is written at offset {written.first_offset}")
    return (
        Fact("clean stop noted:", str(is_clean)),
        Fact("the record is written at", written.first_offset),
        Fact("bytes that readers are sent and that belong to no whole batch:", _torn_size(log)),
    )


def _torn_size(log: PartitionLog) -> int:
    """Return how many bytes readers are sent from the log's start that belong to no whole batch."""
    records = log.read(log.log_start_offset, MIB).records
    return len(records) - sum(batch.size_bytes for batch in batches_in(records))


_OLD: Final = without(CURRENT, "clean_marker_removed_first")
_S18: Final = Tale(
    name="S18",
    title="a clean stop that was none",
    how="A broker loses power, starts, and is told to stop before its logs are recovered. If that passes for a "
    "clean stop, the next start skips recovery: the torn end stays in the log, and readers are sent it.",
    source="KAFKA-10471, KAFKA-15375",
    script=partial(_stopped_while_recovering, rules=CURRENT),
    expected=(
        Fact("clean stop noted:", "False"),
        Fact("the record is written at", 2),
        Fact("bytes that readers are sent and that belong to no whole batch:", 0),
    ),
)

ONE_DISK: Final = (
    _S18,
    Tale(
        name="S18-before",
        title=_S18.title,
        how=_S18.how,
        source=_S18.source,
        script=partial(_stopped_while_recovering, rules=_OLD),
        expected=(
            Fact("clean stop noted:", "True"),
            Fact("the record is written at", 2),
            Fact("bytes that readers are sent and that belong to no whole batch:", 59),
        ),
    ),
)
"""S18."""
