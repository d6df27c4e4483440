"""Check what each answer makes of a follower's log: an account of its end and its high watermark (I33).

What an answer asks for is read from the epochs that the log had before it, which I12 holds against its records; no rule
is called.
- A diverging epoch E that ends at X: records of later epochs than E go; and those from X on, if the log has E, or has
  nothing but later epochs, or nothing but earlier ones.
- An end of the leader below the log's own, after OFFSET_OUT_OF_RANGE: the log ends there. A start above it: the log
  begins there, empty. Otherwise it stays.
- Records: the high watermark is the leader's, within the log.
Whatever else a follower hears cuts nothing. Before KIP-595 followers asked for the ends of epochs, and cut otherwise.

Source: Kafka core AbstractFetcherThread.getOffsetTruncationState and fetchOffsetAndTruncate, 4.4.0; KIP-279, KIP-595.
"""

from __future__ import annotations

from collections.abc import Iterator

from log.storage.checkpoints import EpochEntry
from replication.checkers.observed_log import Bounds, ObservedLog
from replication.roles.messages import Fetch, FetchResponse, ListOffsetsResponse, Message
from replication.roles.outbox import Outbox
from replication.rules.partition import EpochEnd
from replication.rules.settings import PartitionSettings
from replication.rules.switches import Truncation


def wrong_log(
    observed: ObservedLog, message: Message, out: Outbox, settings: PartitionSettings
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a follower's log after `message`; `observed` has not read the log since."""
    if settings.rules.truncation is not Truncation.ON_FETCH:
        return
    before = observed.bounds
    if before is None:
        return
    after, epochs = Bounds.of(observed.log.log), observed.epochs
    cut_to = observed.log.cut_to
    is_used = any(isinstance(each, Fetch) for _, each in out.sent)
    if isinstance(message, FetchResponse) and message.answer.diverging is not None and is_used:
        end = end_after(epochs, before.end, message.answer.diverging)
        is_raised = settings.rules.truncate_before_high_watermark and after.high != min(before.high, end)
        if after.end != end or is_raised:
            yield "I33", f"{_told(observed, before, after)}, where {message.answer.diverging} asks for {end}"
    elif isinstance(message, ListOffsetsResponse) and is_used:
        start, end = before.start, before.end
        if message.end_offset < end:
            end = message.end_offset
        elif message.start_offset > end:
            start = end = message.start_offset
        if after.end != end or after.start != min(start, end):
            place = f"{message.start_offset} to {message.end_offset}"
            yield "I33", f"{_told(observed, before, after)}, where the leader's is from {place}"
    elif cut_to is not None and cut_to < before.end:
        yield "I33", f"{_told(observed, before, after)} for no reason"
    elif isinstance(message, FetchResponse) and is_used:
        high = max(before.start, min(message.answer.high_watermark, after.end))
        if after.high != high:
            yield "I33", f"broker {observed.broker} has the high watermark {after.high}, its leader's makes it {high}"


def _told(observed: ObservedLog, before: Bounds, after: Bounds) -> str:
    return f"broker {observed.broker} cut its log from {before} to {after}"


def end_after(epochs: tuple[EpochEntry, ...], end: int, diverging: EpochEnd) -> int:
    """Return where a log ends once all is gone that a leader's answer shows to be another history."""
    earlier = [entry for entry in epochs if entry.epoch <= diverging.epoch]
    later = [entry for entry in epochs if entry.epoch > diverging.epoch]
    own_end = later[0].start_offset if later else end
    if later and earlier and earlier[-1].epoch != diverging.epoch:
        return min(own_end, end)
    return min(own_end, end, diverging.end_offset)
