"""Decide whether a dump lists every partition of its cluster, and say in sentences what is missing.

A dump is whole unless it is filtered (its reader says so); lists another number of a topic's partitions than the
topic's line declares, or partitions of a topic that no line declares where the lines of other topics do; lists another
number of replicas of a topic's first partition than the topic's ReplicationFactor (replicas being added not counted;
releases before 2.5 counted them); or has a row that could not be read. One cut off between two topics looks whole.

Who refuses: plan, impact, outage, roll and compare (status 2; --partial goes on), and groups assign --topics (status 2,
without --partial). `report` leaves out advice; a question that needs every partition, also by --ask, gives no answer.

    >>> missing_of(["orders"], [(8, None)], np.array([0]), np.array([0]), np.array([[1, 2]]))
    ('orders declares 8 partitions, 1 is listed',)

Source: Kafka TopicCommand.TopicDescription.printDescription and getReplicationFactor, 4.4.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.row_flags import count_in_row
from broker.wording import counted

Declared = tuple[int | None, int | None]
"""The partitions and the replication factor that a topic's line declares; None for what it does not say."""

FILTERED: Final = "not every partition is listed, as in a filtered describe or a list of problems"


@attrs.frozen
class Wholeness:
    """Hold why a dump does not list its whole cluster: a sentence for each reason, none where it is whole.

    `is_accepted` says that the user takes what is listed as the whole (--partial).
    """

    reasons: tuple[str, ...] = ()
    is_accepted: bool = False

    @property
    def is_whole(self) -> bool:
        """Return whether every partition is listed."""
        return not self.reasons

    @property
    def refusal(self) -> str | None:
        """Return why what needs the whole cluster refuses the dump; None where it is whole, or taken for it."""
        return None if self.is_accepted else self.sentence

    @property
    def sentence(self) -> str | None:
        """Return the first reason, and the number of the others; None where the dump is whole."""
        if not self.reasons:
            return None
        more = len(self.reasons) - 1
        return self.reasons[0] + (f" (and {counted(more, 'more reason')})" if more else "")


def unread(count: int, total: int, line: int | None, why: str) -> str:
    """Return the reason of a dump of which `count` of `total` rows could not be read, the first in `line`.

    >>> unread(9, 15, 3, "the field Topic is missing")
    '9 of 15 rows could not be read (line 3: the field Topic is missing)'
    """
    place = "" if line is None else f"line {line}: "
    return f"{count:,} of {counted(total, 'row')} could not be read ({place}{why})"


def missing_of(
    names: Sequence[str],
    declared: Sequence[Declared],
    topic_index: NDArray[Any],
    partition_ids: NDArray[Any],
    replicas: NDArray[Any],
    adding: NDArray[Any] | None = None,
) -> tuple[str, ...]:
    """Return a sentence for each of T topics whose declaration and rows differ, in the topics' order.

    `topic_index` and `partition_ids` int[P], `replicas` and `adding` int[P, any width], -1 pads. Cost: O(P + T).
    """
    if all(count is None and factor is None for count, factor in declared):
        return ()
    found = np.bincount(topic_index, minlength=len(names)).tolist()
    held = count_in_row(replicas >= 0)
    fresh = np.zeros_like(held) if adding is None else count_in_row(adding >= 0)
    first = {int(topic_index[row]): row for row in np.flatnonzero(partition_ids == 0).tolist()}
    some_declared = any(count is not None for count, _ in declared)
    reasons = []
    for topic, (name, (count, factor)) in enumerate(zip(names, declared, strict=True)):
        listed = f"{found[topic]} {'is' if found[topic] == 1 else 'are'} listed"
        row = first.get(topic)
        if count is None and some_declared:
            reasons.append(f"no line declares how many partitions {name} has, {listed}")
        elif count is not None and count != found[topic]:
            reasons.append(f"{name} declares {counted(count, 'partition')}, {listed}")
        elif factor is not None and row is not None and factor not in (held[row], held[row] - fresh[row]):
            replicas_listed = f"{held[row]} {'is' if held[row] == 1 else 'are'} listed"
            reasons.append(
                f"{name} declares {counted(factor, 'replica')} of a partition, {replicas_listed} of its first"
            )
    return tuple(reasons)
