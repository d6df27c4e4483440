"""Tell which fields of the records of internal topics a release does not know yet.

What it decides: how a tool of an older release reads a record of the newest: fields with a tag that it does not know
are passed over, and not printed.

Example: as_of(CONSUMER_GROUP_RECORDS[6].value, Release("4.2")) has no assignmentTimestamp

Left out: releases before 4.1, whose tools print these records in other forms.

Source: the */src/main/resources/common/message/*.json of 4.1.2, 4.2.1 and 4.3.1 (KIP-1226, KIP-1263).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

import attrs

from broker.releases import Release
from broker.wire.fields import Field, Message

OLDEST: Final = Release("4.1")
"""The oldest release whose forms are known."""

SINCE: Final[Mapping[tuple[str, str], Release]] = {
    ("ConsumerGroupTargetAssignmentMetadataValue", "assignmentTimestamp"): Release("4.3"),
    ("ShareGroupTargetAssignmentMetadataValue", "assignmentTimestamp"): Release("4.3"),
    ("StreamsGroupTargetAssignmentMetadataValue", "assignmentTimestamp"): Release("4.3"),
    ("ConsumerGroupCurrentMemberAssignmentValue", "assignmentEpochs"): Release("4.3"),
    ("StreamsGroupCurrentMemberAssignmentValue", "assignmentEpochs"): Release("4.2"),
    ("StreamsGroupMetadataValue", "validatedTopologyEpoch"): Release("4.2"),
    ("StreamsGroupMetadataValue", "lastAssignmentConfigs"): Release("4.2"),
    ("ShareSnapshotValue", "deliveryCompleteCount"): Release("4.2"),
    ("ShareUpdateValue", "deliveryCompleteCount"): Release("4.2"),
}
"""The first release with a field, by message and field; the others are in all of them."""


@functools.cache
def as_of(message: Message, release: Release) -> Message:
    """Return a message with the fields that a release knows."""
    return attrs.evolve(message, fields=_known(message.name, message.fields, release))


def _known(message: str, fields: tuple[Field, ...], release: Release) -> tuple[Field, ...]:
    kept = (field for field in fields if SINCE.get((message, field.name), release) <= release)
    return tuple(
        attrs.evolve(field, fields=_known(message, field.fields, release)) if field.fields else field for field in kept
    )
