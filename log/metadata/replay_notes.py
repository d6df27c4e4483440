"""Describe what a replay could not read: later versions of records, torn ends of files, and uncertain brokers.

What it decides: the notes that go with a cluster's metadata, one sentence each.

Constraints: a record that was left out is never passed over in silence if it may have decided who is alive: one that
registers, fences or unregisters a broker, and any whose type is not known.

Example: "the live brokers and their racks are uncertain: 1 record that may decide them was left out"

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.errors import CorruptDataError
from log.metadata.reading import RejectedRecords, UnreadableEntryError
from log.metadata.replay import Replay
from log.metadata.schemas import DECIDE_WHO_IS_ALIVE, SCHEMAS


def replay_notes(replay: Replay, rejected: RejectedRecords | None = None) -> Iterator[str]:
    """Yield the notes on the records that `replay` has read; `rejected` are those that it left out."""
    for (kind, version), count in sorted(replay.later_versions.items()):
        known = SCHEMAS[kind].version_max
        records = f"{count:,} {kind.name}{'' if count == 1 else 's'}"
        yield f"{records} of version {version}, later than the newest known, {known}: what it adds was skipped"
    yield from dict.fromkeys(replay.torn_ends)
    uncertain = 0 if rejected is None else sum(map(may_hide_a_broker, rejected.errors))
    if uncertain:
        records = (
            "1 record that may decide them was"
            if uncertain == 1
            else f"{uncertain:,} records that may decide them were"
        )
        yield f"the live brokers and their racks are uncertain: {records} left out"


def may_hide_a_broker(error: CorruptDataError) -> bool:
    """Return whether what was left out with this error may have decided which brokers are alive."""
    if not isinstance(error, UnreadableEntryError) or error.kind is None:
        return True
    return error.kind in DECIDE_WHO_IS_ALIVE
