"""Small random clusters as the controller leaves them: dead brokers fenced, ISR and ELR as the rules keep them."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import settings
from hypothesis import strategies as st

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from broker.liveness import Liveness

FEW = settings(max_examples=settings.default.max_examples // 8)
"""An eighth of the examples of the profile: each is compared with every set of brokers."""

IDS = tuple(map(BrokerId, (1, 2, 3, 5, 8)))
STOPPING = IDS[1]
"""Is in controlled shutdown where others would be fenced, which must make no difference; the last one is cordoned."""


@attrs.frozen(kw_only=True)
class Partition:
    """One partition as the controller holds it."""

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    elr: tuple[BrokerId, ...]
    leader: BrokerId
    min_isr: int
    unclean: bool
    size_bytes: int


@attrs.frozen(kw_only=True)
class Small:
    """A small cluster: its partitions, the brokers that are dead, and the racks of all."""

    partitions: tuple[Partition, ...]
    dead: frozenset[BrokerId]
    racks: tuple[str | None, ...]
    with_elr: bool

    def view(self) -> ClusterView:
        """The same as a view; each partition is a topic of its own, as settings are a topic's."""
        return ClusterView.build(
            name="small",
            source="drawn",
            format="test",
            brokers=[
                BrokerView(
                    id=each,
                    fenced=each in self.dead and each != STOPPING,
                    in_controlled_shutdown=each in self.dead and each == STOPPING,
                    cordoned=each == IDS[-1],
                    rack=rack,
                    stated=None if each in self.dead else Liveness.ALIVE,
                )
                for each, rack in zip(IDS, self.racks, strict=True)
            ],
            topics=[
                TopicView(
                    f"t{number}",
                    min_insync_replicas=each.min_isr,
                    configs=(("unclean.leader.election.enable", "true"),) if each.unclean else (),
                )
                for number, each in enumerate(self.partitions)
            ],
            partitions=PartitionTable(
                topic_index=list(range(len(self.partitions))),
                partition_ids=[0] * len(self.partitions),
                replicas=padded([each.replicas for each in self.partitions]),
                isr=padded([each.isr for each in self.partitions]),
                elr=padded([each.elr for each in self.partitions]) if self.with_elr else None,
                leader=[each.leader for each in self.partitions],
                size_bytes=[each.size_bytes for each in self.partitions],
            ),
        )


def padded(rows: list[tuple[BrokerId, ...]]) -> list[list[int]]:
    """Rows of equal length, -1 behind."""
    width = max(map(len, rows), default=0)
    return [[*row, *[-1] * (width - len(row))] for row in rows]


@st.composite
def partitions(draw: Any, dead: frozenset[BrokerId], with_elr: bool) -> Partition:
    """One partition in a state that the controller can have left."""
    replicas = tuple(draw(st.lists(st.sampled_from(IDS), min_size=1, max_size=4, unique=True)))
    min_isr = draw(st.integers(1, 3))
    bound = min(min_isr, len(replicas))
    unclean = draw(st.booleans())
    live = [each for each in replicas if each not in dead]
    isr = tuple(each for each in live if draw(st.integers(0, 3)))
    elr: tuple[BrokerId, ...] = ()
    if with_elr and len(isr) < bound:
        elr = tuple(each for each in sorted(replicas) if each not in isr and draw(st.booleans()))
    if not isr and with_elr and (first := [each for each in replicas if each in elr and each in live]):
        # A live member of the ELR leads, and is the ISR.
        isr, elr = (first[0],), tuple(each for each in elr if each != first[0])
    if not isr and not elr and not with_elr:
        isr = (draw(st.sampled_from(replicas)),)  # The member that was fenced last stays in the ISR.
    if not isr and not elr:
        elr = (replicas[0],) if replicas[0] in dead else ()
        isr = () if elr else (replicas[0],)
    in_sync = [each for each in isr if each in live]
    if not in_sync and unclean and live:
        isr, elr, in_sync = (live[0],), (), [live[0]]
    leader = draw(st.sampled_from(in_sync)) if in_sync else BrokerId(-1)
    return Partition(
        replicas=replicas,
        isr=isr,
        elr=elr,
        leader=leader,
        min_isr=min_isr,
        unclean=unclean,
        size_bytes=draw(st.integers(0, 1000)),
    )


@st.composite
def clusters(draw: Any) -> Small:
    """A cluster of five brokers, some dead, with up to six partitions."""
    dead = frozenset(draw(st.lists(st.sampled_from(IDS), max_size=2)))
    with_elr = draw(st.booleans())
    racks = tuple(draw(st.lists(st.sampled_from(("a", "b", "c", None)), min_size=5, max_size=5)))
    listed = draw(st.lists(partitions(dead, with_elr), min_size=1, max_size=6))
    return Small(partitions=tuple(listed), dead=dead, racks=racks, with_elr=with_elr)
