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
        "log/partition/reading.py place_of [dropped operand] offset > end.offset or segment is None -> (segment "
        "is None)": (
            "a start above the log's end is refused before, and the high watermark lies in the log; where the log "
            "starts above its end, every start is refused"
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
