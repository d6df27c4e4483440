"""Group the old segments that one new segment replaces.

What it decides: how a list of segments that is about to be rewritten is cut into groups; each group is written into
one segment, so that segments that have shrunk over the passes do not stay small for ever.

Constraints: a group is consecutive; its logs and each kind of its indexes fit together into one segment as they are
now, since nothing grows by being cleaned; no offset of it lies more than 2^31 - 1 above the first base offset, or an
index could not hold it. A segment that breaks a limit by itself is a group by itself.

How: greedy, oldest first. The last offset of a segment is not looked up, as that reads its end: it is taken to be just
below the base of the next one, or below the first offset that is not cleaned. An empty segment is not asked, or a
range of 2^31 offsets would keep an empty segment alive.

Example: sizes 300, 300, 300, 900 with segments of 700 bytes give groups of 2, 1 and 1.

The cost is linear in the segments.

Source: kafka.log.Cleaner.groupSegmentsBySize, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.ids import INT32_MAX, Offset
from log.log_config import LogConfig
from log.segments.segment import Segment


def group_segments(
    segments: Sequence[Segment], first_uncleanable_offset: Offset, config: LogConfig
) -> tuple[tuple[Segment, ...], ...]:
    """Return `segments` split, in their order, into the groups of which each becomes one segment."""
    groups: list[list[Segment]] = []
    for index, segment in enumerate(segments):
        is_last = index + 1 == len(segments)
        next_base_offset = first_uncleanable_offset if is_last else segments[index + 1].base_offset
        if groups and _fits(groups[-1], segment, next_base_offset - 1, config):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return tuple(map(tuple, groups))


def _fits(group: Sequence[Segment], segment: Segment, last_offset: int, config: LogConfig) -> bool:
    """Tell whether `segment`, with its estimated last offset, may join `group`."""
    members = (*group, segment)
    return (
        sum(member.size_bytes for member in members) <= config.segment_size_bytes
        and sum(member.offset_index.size_bytes for member in members) <= config.index_size_bytes
        and sum(member.time_index.size_bytes for member in members) <= config.index_size_bytes
        and (segment.size_bytes == 0 or last_offset - group[0].base_offset <= INT32_MAX)
    )
