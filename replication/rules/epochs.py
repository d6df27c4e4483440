"""The epoch cache: at which offset each leader epoch of a log begins, and where an epoch ends.

It decides the answer to "where does epoch r end in your log?", which is how two replicas find the place where
their logs part without comparing records.

Goals, most important first: the answer never names an offset past the last common record; a leader can
answer for every epoch that a follower may ask about, its own included, before it has written anything.

Constraints: entries rise strictly in epoch and in offset; an entry put in drops those that it contradicts.

How. The epoch asked for is the newest: it ends where the log ends. Otherwise it ends where the first newer epoch
begins, and the answer names the epoch in the log that is nearest below the one asked for. Nothing newer: the log
cannot tell. Nothing at or below it: everything of that epoch is gone or never was, so the answer is the epoch
asked for and the start of the first newer one.

Worked example: epochs begin 1 at 0, 3 at 5 and the log ends at 8. Epoch 3 ends at 8; epoch 2 is answered as
epoch 1 ending at 5; epoch 0 as epoch 0 ending at 0; epoch 4 is not known.

Left out: the checkpoint file of a real log's cache, which lives with the log.

Source: Kafka storage LeaderEpochFileCache, commit 1eb7644 (2024-10), and the same class in 0.11.0 and 2.0.0 for the
older answer; KIP-101, KIP-279, KAFKA-7415, KAFKA-10706.
"""

from __future__ import annotations

from broker.ids import LeaderEpoch, Offset
from replication.rules.partition import UNKNOWN_EPOCH, EpochEnd, EpochStart
from replication.rules.switches import Rules

UNDEFINED_END = EpochEnd()
"""The answer of a log that cannot tell."""


def end_offset_for(epochs: tuple[EpochStart, ...], epoch: LeaderEpoch, end_offset: Offset, rules: Rules) -> EpochEnd:
    """Return where `epoch` ends in a log that ends at `end_offset`. Cost: linear in the epochs."""
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


def latest_epoch(epochs: tuple[EpochStart, ...]) -> LeaderEpoch:
    """Return the newest epoch, -1 if there is none."""
    return epochs[-1].epoch if epochs else UNKNOWN_EPOCH


def assigned(epochs: tuple[EpochStart, ...], epoch: LeaderEpoch, start_offset: Offset) -> tuple[EpochStart, ...]:
    """Return the cache with an epoch put in; entries that are not older in epoch and in offset go."""
    assert epoch >= 0, epoch
    assert start_offset >= 0, start_offset
    if epochs and epochs[-1].epoch == epoch and epochs[-1].start_offset <= start_offset:
        return epochs
    kept = len(epochs)
    while kept and (epochs[kept - 1].epoch >= epoch or epochs[kept - 1].start_offset >= start_offset):
        kept -= 1
    return (*epochs[:kept], EpochStart(epoch, start_offset))


def trimmed_at_end(epochs: tuple[EpochStart, ...], end_offset: Offset) -> tuple[EpochStart, ...]:
    """Return the cache of a log that was cut to `end_offset`: epochs that begin there or later go."""
    kept = len(epochs)
    while kept and epochs[kept - 1].start_offset >= end_offset:
        kept -= 1
    return epochs[:kept]


def trimmed_at_start(epochs: tuple[EpochStart, ...], start_offset: Offset) -> tuple[EpochStart, ...]:
    """Return the cache of a log whose start was raised: the epoch that lies there begins there now."""
    dropped = 0
    while dropped < len(epochs) and epochs[dropped].start_offset <= start_offset:
        dropped += 1
    if dropped == 0:
        return epochs
    return (EpochStart(epochs[dropped - 1].epoch, start_offset), *epochs[dropped:])
