"""Decide at which offset each leader epoch begins and ends in a log: LeaderEpochFileCache as a pure function.

What it decides: the answer to OffsetsForLeaderEpoch, by which two replicas find the offset where their logs diverge
without comparing records; and what the cache holds after appends and truncations.

Goals, most important first:
1. The answer never names an offset past the last common record.
2. A leader can answer for every epoch that a follower may ask about, its own included, before it has appended
   anything.

Constraints: entries rise strictly in epoch and in offset; an entry that is assigned drops those that it contradicts.

How: the latest epoch ends at the log's end. An earlier epoch ends where the first later epoch begins, and the answer
names the largest epoch of the log at or below the epoch asked for. If no epoch of the log is later, the log cannot
answer. If every epoch of the log is later, the answer is the epoch asked for and the start of the first later one.

Example: epoch 1 begins at 0, epoch 3 at 5, and the log ends at 8.

>>> from replication.rules.switches import CURRENT
>>> cache = (EpochStart(LeaderEpoch(1), Offset(0)), EpochStart(LeaderEpoch(3), Offset(5)))
>>> for epoch in (0, 1, 2, 3, 4):
...     found = end_offset_for(cache, LeaderEpoch(epoch), Offset(8), CURRENT)
...     print(epoch, (found.epoch, found.end_offset))
0 (0, 0)
1 (1, 5)
2 (1, 5)
3 (3, 8)
4 (-1, -1)

Left out: the leader-epoch-checkpoint file, which `log.partition.epoch_cache` keeps.

Source: Kafka storage LeaderEpochFileCache (assign, endOffsetFor, truncateFromStart, truncateFromEnd), 4.3.1, and the
same class in 0.11.0 and 2.0.0 for the older answer; KIP-101, KIP-279, KAFKA-7415, KAFKA-10706.
"""

from __future__ import annotations

from broker.ids import LeaderEpoch, Offset
from replication.rules.partition import UNKNOWN_EPOCH, EpochEnd, EpochStart
from replication.rules.switches import Rules

UNDEFINED_END = EpochEnd()
"""The answer of a log that does not know the epoch."""


def end_offset_for(epochs: tuple[EpochStart, ...], epoch: LeaderEpoch, end_offset: Offset, rules: Rules) -> EpochEnd:
    """Return the end of `epoch` in a log that ends at `end_offset`. Cost: linear in the epochs."""
    if epoch == UNKNOWN_EPOCH or not epochs:
        return UNDEFINED_END
    if epochs[-1].epoch == epoch:
        return EpochEnd(epoch, end_offset)
    floor: EpochStart | None = None
    for entry in epochs:
        if entry.epoch > epoch:
            if floor is not None:
                return EpochEnd(floor.epoch, entry.start_offset)
            # Before KAFKA-7415 a log that began after the epoch asked for did not answer.
            return EpochEnd(epoch, entry.start_offset) if rules.epoch_cached_on_election else UNDEFINED_END
        floor = entry
    return UNDEFINED_END


def epoch_at(epochs: tuple[EpochStart, ...], offset: Offset) -> LeaderEpoch:
    """Return the epoch of the record at an offset, -1 if it is below all epochs."""
    return next((each.epoch for each in reversed(epochs) if each.start_offset <= offset), UNKNOWN_EPOCH)


def latest_epoch(epochs: tuple[EpochStart, ...]) -> LeaderEpoch:
    """Return the latest epoch of a cache, -1 if it is empty."""
    return epochs[-1].epoch if epochs else UNKNOWN_EPOCH


def assigned(epochs: tuple[EpochStart, ...], epoch: LeaderEpoch, start_offset: Offset) -> tuple[EpochStart, ...]:
    """Return the cache with an epoch assigned; entries whose epoch or offset is not below it are dropped."""
    assert epoch >= 0, epoch
    assert start_offset >= 0, start_offset
    if epochs and epochs[-1].epoch == epoch and epochs[-1].start_offset <= start_offset:
        return epochs
    kept = len(epochs)
    while kept and (epochs[kept - 1].epoch >= epoch or epochs[kept - 1].start_offset >= start_offset):
        kept -= 1
    return (*epochs[:kept], EpochStart(epoch, start_offset))


def trimmed_at_end(epochs: tuple[EpochStart, ...], end_offset: Offset) -> tuple[EpochStart, ...]:
    """Return the cache of a log truncated to `end_offset`: epochs that begin there or later are dropped."""
    kept = len(epochs)
    while kept and epochs[kept - 1].start_offset >= end_offset:
        kept -= 1
    return epochs[:kept]


def trimmed_at_start(epochs: tuple[EpochStart, ...], start_offset: Offset) -> tuple[EpochStart, ...]:
    """Return the cache of a log that now starts at `start_offset`: the epoch of that offset begins there."""
    dropped = 0
    while dropped < len(epochs) and epochs[dropped].start_offset <= start_offset:
        dropped += 1
    if dropped == 0:
        return epochs
    return (EpochStart(epochs[dropped - 1].epoch, start_offset), *epochs[dropped:])
