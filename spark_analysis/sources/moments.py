"""Name each moment of a metadata log by its offset, its time, and what changed, so that no two names are alike.

What it decides: a label has the offset of the moment, its time, and which brokers were fenced, came back, were
registered or left since the moment before; where no broker changed, how many partitions did. The first moment says how
many brokers are live. A moment that is asked for twice is shown once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import attrs

from broker.cluster import ClusterView
from broker.ids import Offset
from broker.units import TimeMs
from log.metadata import MetadataImage, RejectedRecords, view_of
from log.tools.timestamps import time_text
from placement.balance.changes import changes
from placement.balance.out_of_sync import brokers_in_words


@attrs.frozen(eq=False)
class MomentView:
    """Hold the view of a metadata log after `offset`."""

    offset: Offset
    time_ms: TimeMs
    view: ClusterView

    @classmethod
    def of(cls, image: MetadataImage, name: str, source: str, rejected: RejectedRecords) -> MomentView:
        """Return the view of an image; partitions that cannot be are added to `rejected`."""
        return cls(image.offset, image.time_ms, view_of(image, name=name, source=source, rejected=rejected))


def that_differ(found: Sequence[MomentView]) -> list[MomentView]:
    """Return the moments without those that equal the next in every partition: a broker without any came or went."""
    return [before for before, after in pairwise(found) if changes(before.view, after.view)] + list(found[-1:])


def labelled(found: Sequence[MomentView], *, by_moment: bool) -> tuple[ClusterView, ...]:
    """Return the views, each once; `by_moment`, with the label of its moment after its name."""
    if not by_moment:
        return tuple(one.view for one in found)
    once = list({one.offset: one for one in found}.values())
    views = []
    for place, one in enumerate(once):
        what = what_changed(once[place - 1].view if place else None, one.view)
        name = f"{one.view.name} at offset {one.offset}, {time_text(one.time_ms)} ({what})"
        views.append(attrs.evolve(one.view, name=name))
    return tuple(views)


def what_changed(before: ClusterView | None, after: ClusterView) -> str:
    """Return what happened to the brokers between two moments of a cluster, or to how many partitions."""
    fenced = {broker.id: broker.fenced for broker in after.brokers}
    if before is None:
        down = sorted(broker for broker, is_fenced in fenced.items() if is_fenced)
        live = len(fenced) - len(down)
        said = f"{live} broker{'' if live == 1 else 's'} live"
        return f"{said}, {brokers_in_words(down)} fenced" if down else said
    earlier = {broker.id: broker.fenced for broker in before.brokers}
    kinds = (
        ("fenced", [one for one, down in fenced.items() if down and not earlier.get(one, False)]),
        ("back", [one for one, down in fenced.items() if not down and earlier.get(one, False)]),
        ("new", [one for one, down in fenced.items() if not down and one not in earlier]),
        ("gone", [one for one in earlier if one not in fenced]),
    )
    parts = [f"{brokers_in_words(sorted(brokers))} {kind}" for kind, brokers in kinds if brokers]
    if parts:
        return ", ".join(parts)
    count = len({(change.topic, change.partition) for change in changes(before, after)})
    return f"{count:,} partition{'' if count == 1 else 's'} changed"
