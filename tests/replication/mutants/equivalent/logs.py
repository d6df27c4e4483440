"""List the equivalent mutants of a partition's log, each with the reason.

What it decides: nothing beside `equivalents`, which reads the list and says what belongs in it.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

LOGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "log/partition/leader_rules.py _check_timestamps [comparison] low <= min(timestamps) -> (low < "
        "min(timestamps))": (
            "a time at the limit is looked at once more, record by record, and is none of the wrong ones"
        ),
        "log/partition/segment_recovery.py _recover_columns [off by one] 1 -> 2 (2)": (
            "a first epoch that equals the other number is negative, and such epochs are not assigned"
        ),
        "log/partition/segment_recovery.py _regular_headers [off by one] 0 -> 1 (4)": (
            "batches of one record are recovered one by one then, with the same outcome: a test holds the two together"
        ),
        "log/partition/segment_recovery.py _regular_headers [off by one] 0 -> 1 (3)": (
            "a segment that begins with a batch of one record is recovered batch by batch then, with the same outcome"
        ),
        "log/partition/reading.py _aborted_transactions [dropped branch] collected.is_complete -> False": (
            "once a last stable offset is at or behind what was read, later transactions begin behind it: more "
            "indexes are read, and nothing more is found"
        ),
        "log/partition/leader_rules.py _check_timestamps [dropped operand] stamps or not timestamps or (low <= "
        "min(timestamps) and max(timestamps) <= high) -> (not timestamps or (low <= min(timestamps) and "
        "max(timestamps) <= high))": (
            "with LogAppendTime the look at each record asks for its type only, and the type is right here"
        ),
        "log/partition/log_offsets.py update_first_unstable_offset [dropped operand] first is not None and "
        "(first < start or not self.producers.is_first_unstable_placed) -> (first is not None)": (
            "a transaction that was appended begins with a batch, which is not cleaned before it is decided: a "
            "look-up answers with the same offset"
        ),
        "log/partition/schedule.py __init__ [off by one] 0 -> 1": "the numbers only tell what was asked for first",
        "log/partition/schedule.py add [off by one] 1 -> 2": "the numbers only tell what was asked for first",
        "log/partition/leader_rules.py _check_timestamps [comparison] max(timestamps) <= high -> (max(timestamps) < "
        "high)": "a time at the limit is looked at once more, record by record, and is none of the wrong ones",
        "log/partition/producer_rebuild.py rebuild_producer_state [comparison] producers.map_end_offset >= last_offset "
        "-> (producers.map_end_offset > last_offset)": (
            "a state that ends at the offset stays as it is, and there is nothing to be read up to it"
        ),
        "log/partition/producer_rebuild.py rebuild_producer_state [comparison] last_offset > producers.map_end_offset "
        "-> (last_offset >= producers.map_end_offset)": "no segment lies between an offset and itself",
        "log/partition/flushing.py _flush_to [comparison] end_offset > local.recovery_point -> (end_offset >= "
        "local.recovery_point)": (
            "up to the recovery point no segment is left to be flushed, and it is not moved to where it is or below"
        ),
        "log/partition/local_log.py roll [comparison] base_offset < active.base_offset -> (base_offset <= "
        "active.base_offset)": "where the active segment begins, the question before has been answered already",
        "log/partition/leader_append.py _stamped_plain [dropped branch] len(parts) == 1 -> False": (
            "only speed: the one batch is read from its bytes once more"
        ),
        "log/partition/reading.py _read_segment [dropped operand] segment.base_offset == limit.segment_base_offset "
        "and limit.is_known -> (segment.base_offset == limit.segment_base_offset)": (
            "a place that is not known names the segment -1, and no segment begins there"
        ),
        "log/partition/log_offsets.py update_first_unstable_offset [comparison] first < start -> (first <= start)": (
            "a transaction begins with its first batch: a look-up answers with the same offset"
        ),
        "log/partition/log_offsets.py update_first_unstable_offset [dropped operand] first < start or not "
        "self.producers.is_first_unstable_placed -> (first < start)": (
            "a transaction begins with a batch, which is not cleaned before it is decided and replicated: a look-up "
            "answers with the same offset"
        ),
        "log/partition/epoch_cache.py _assign [comparison] entries[-1].epoch >= epoch -> (entries[-1].epoch > epoch)": (
            "an entry of the same epoch that starts at or before the offset was kept before; else the other operand "
            "drops it"
        ),
        "log/partition/recovery.py _load_segment [off by one] 0 -> 1": "a size is rounded down to whole entries",
        "log/partition/recovery.py load_segments [dropped call] local.segments.clear() -> pass": (
            "the files of what was loaded before a split are all there: each is loaded again in its place, and only "
            "segments behind these are recovered"
        ),
        "log/partition/appending.py _count_at_once [off by one] 1 -> 2": (
            "only speed: a write ends a batch earlier, and the flush falls due behind the same batch"
        ),
        **dict.fromkeys(
            (
                "log/partition/leader_append.py _stamped [off by one] 0 -> 1",
                "log/partition/leader_append.py _stamped [swapped arguments] type(batch)(memoryview(stamped(batch, "
                "stamp)), 0, append.where) -> type(batch)(memoryview(stamped(batch, stamp)), append.where, 0)",
            ),
            (
                "where a batch stood is asked for by errors only, and all of it that is read has been read in the "
                "batch that was sent"
            ),
        ),
        **dict.fromkeys(
            tuple(
                f"log/partition/{place} [swapped arguments] TimestampOffset(NO_TIMESTAMP, -1) -> TimestampOffset(-1, "
                "NO_TIMESTAMP)"
                for place in (
                    "appending.py columns",
                    "appending.py _append_info",
                    "leader_append.py _rebuilt_timestamp",
                )
            ),
            "both are -1",
        ),
        **dict.fromkeys(
            tuple(
                "log/partition/leader_rules.py checked_timestamps [" + change
                for change in (
                    "comparison] batch.record_count >= COLUMNS_FROM_COUNT -> (batch.record_count > COLUMNS_FROM_COUNT)",
                    "dropped branch] batch.record_count >= COLUMNS_FROM_COUNT -> False",
                    "dropped branch] batch.record_count >= COLUMNS_FROM_COUNT -> True",
                    "negated condition] batch.record_count >= COLUMNS_FROM_COUNT -> (not (batch.record_count >= "
                    "COLUMNS_FROM_COUNT))",
                )
            ),
            "only speed: records and columns of a batch are alike, and so is what damage raises: a test compares them",
        ),
        **dict.fromkeys(
            (
                "log/partition/leader_rules.py _check_timestamps [dropped branch] not is_late_type and (stamps or not "
                "timestamps or (low <= min(timestamps) and max(timestamps) <= high)) -> False",
                "log/partition/leader_rules.py _check_timestamps [dropped operand] stamps or not timestamps or (low <= "
                "min(timestamps) and max(timestamps) <= high) -> (stamps or not timestamps)",
            ),
            "only speed: the look at each record finds none that is wrong",
        ),
        **dict.fromkeys(
            (
                "log/partition/segment_recovery.py _regular_headers [off by one] 0 -> 1",
                "log/partition/segment_recovery.py _regular_headers [off by one] 0 -> 1 (2)",
                "log/partition/segment_recovery.py _regular_headers [off by one] 2 -> 3",
                "log/partition/segment_recovery.py _regular_headers [comparison] int(relative[0]) >= 0 -> "
                "(int(relative[0]) > 0)",
                "log/partition/segment_recovery.py _regular_headers [comparison] int(relative[-1]) <= "
                "RELATIVE_OFFSET_MAX -> (int(relative[-1]) < RELATIVE_OFFSET_MAX)",
                "log/partition/segment_recovery.py _regular_headers [dropped branch] is_regular -> False",
                "log/partition/segment_recovery.py recover_segment [dropped branch] headers is None -> True",
            ),
            "only speed: such segments are recovered batch by batch then, with the same outcome",
        ),
        **dict.fromkeys(
            (
                (
                    "log/partition/segment_recovery.py recover_segment [dropped branch] segment.size_bytes >= "
                    "COLUMNS_FROM_BYTES -> False"
                ),
                (
                    "log/partition/segment_recovery.py recover_segment [comparison] segment.size_bytes >= "
                    "COLUMNS_FROM_BYTES -> (segment.size_bytes > COLUMNS_FROM_BYTES)"
                ),
                (
                    "log/partition/segment_recovery.py recover_segment [negated condition] segment.size_bytes >= "
                    "COLUMNS_FROM_BYTES -> (not (segment.size_bytes >= COLUMNS_FROM_BYTES))"
                ),
            ),
            (
                "only speed: segments of any size are recovered by both ways with the same outcome, which a test and "
                "the campaign hold together"
            ),
        ),
        **dict.fromkeys(
            (
                "log/partition/local_log.py __init__ [off by one] 0 -> 1",
                "log/partition/local_log.py __init__ [off by one] 0 -> 1 (2)",
                "log/partition/local_log.py __init__ [dropped call] self.end_offset = Offset(0) -> pass",
                "log/partition/local_log.py __init__ [dropped call] self.recovery_point = Offset(0) -> pass",
                "log/partition/log_offsets.py __init__ [off by one] 0 -> 1",
                "log/partition/log_offsets.py __init__ [off by one] 0 -> 1 (2)",
                "log/partition/log_offsets.py __init__ [dropped call] self.log_start_offset = Offset(0) -> pass",
                "log/partition/log_offsets.py __init__ [dropped call] self.high_watermark = Offset(0) -> pass",
            ),
            "`open_log` alone makes it, and sets the offset before anything reads it",
        ),
    }
)
