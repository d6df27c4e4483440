"""Define what a plan should reach; a goal that contradicts itself is refused.

A broker that is down (broker/liveness.py) keeps what it holds and receives nothing; one that is removed keeps nothing.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import PAD, SIZE_UNKNOWN, BrokerView, ClusterView, Int32Array, Int64Array, PartitionTable
from broker.errors import RefusedError, UsageError
from broker.ids import BrokerId
from broker.row_flags import members
from broker.wording import brokers_listed
from placement.planning.reassignment import Reassignment, packed

MEASURES: Final = ("replicas", "bytes")
"""What a plan moves the least of."""

KINDS: Final = ("balance", "drain", "add", "racks", "factor")
NARROW_KINDS: Final = ("drain", "factor")
"""The kinds that change only what removed brokers and the factor ask for; the others may change every partition."""

SHOWN_MAX: Final = 5
"""Brokers or partitions that a sentence names, at most."""


class PlanRefusedError(RefusedError):
    """A goal is unreachable or its plan is not executable; the text suggests a remedy."""


class MissingInputError(UsageError):
    """Report input missing for a goal: sizes, racks, capacities, or some of the partitions."""


@attrs.frozen(kw_only=True)
class Goal:
    """Describe what a plan should reach.

    `remove` are drained; `add` are brokers with their racks, None for none; `factor` is the replicas that each
    partition should have. Topics of `exclude_topics` stay as they are. With `only_leaders` no replica moves. With
    `per_topic` each topic is spread evenly by itself as well. With `new_only_receives` only the brokers of `add`
    receive replicas. With `strict_racks` a partition with more replicas than racks is refused. A plan moves the least
    of what `by` says. Goals `drain` and `factor` change no other partition than they must, nor move what can stay
    (given.py). Replicas become as even as that allows, bytes within a `tolerance`: each broker ends within that
    fraction of its reachable mean. With `capacity` bytes become even in proportion to these disk bytes, which every
    broker that stays must have.
    """

    kind: str = "balance"
    remove: tuple[BrokerId, ...] = ()
    add: tuple[tuple[BrokerId, str | None], ...] = ()
    factor: int | None = None
    exclude_topics: tuple[str, ...] = ()
    only_leaders: bool = False
    per_topic: bool = False
    new_only_receives: bool = False
    strict_racks: bool = False
    by: str = "replicas"
    tolerance: float | None = None
    capacity: tuple[tuple[BrokerId, int], ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"goal is {self.kind!r}; allowed are {', '.join(KINDS)}")
        if self.by not in MEASURES:
            raise UsageError(f"a plan by {self.by!r} is not known; allowed are {', '.join(MEASURES)}")
        for kind, value, option in (
            ("drain", self.remove, "brokers to remove (--remove 5,6)"),
            ("add", self.add, "brokers to add (--add 7:rack-a)"),
            ("factor", self.factor, "a factor (--factor 3)"),
        ):
            if self.kind == kind and not value:
                raise UsageError(f"goal {kind} needs {option}")
        if self.factor is not None and self.factor < 1:
            raise UsageError(f"factor is {self.factor}; the least is 1")
        self._check_racks_of_added()
        both = sorted(set(self.remove) & {number for number, _ in self.add})
        if both:
            raise UsageError(f"{brokers_listed(both)} cannot be both added and removed")
        if self.new_only_receives and not self.add:
            raise UsageError("only new brokers may receive, but none is added (--add 7:rack-a)")
        if self.only_leaders and (self.remove or self.add or self.factor is not None):
            raise UsageError("a plan of leaders alone moves no replica: it can neither add, remove nor change a factor")
        if self.by_bytes and self.only_leaders:
            raise UsageError("a plan of leaders alone copies no byte; leave out --by bytes, or --only-leaders")
        self._check_tolerance()
        self._check_narrow()
        if self.only_leaders and (self.kind == "racks" or self.per_topic or self.strict_racks):
            raise UsageError("a plan of leaders alone moves no replica: it changes no racks, nor replicas of a topic")

    def _check_narrow(self) -> None:
        if self.is_narrow and self.per_topic:
            other = "--goal balance --remove IDS" if self.kind == "drain" else "--goal balance afterwards"
            raise UsageError(
                f"goal {self.kind} changes only the partitions that it must, and --per-topic spreads all of a topic; "
                f"use {other}"
            )

    def _check_racks_of_added(self) -> None:
        racks: dict[BrokerId, str] = {}
        for number, rack in self.add:
            if rack is not None and racks.setdefault(number, rack) != rack:
                raise UsageError(
                    f"broker {number} is to be added on two racks, {racks[number]!r} and {rack!r}; a broker has one"
                )

    def _check_tolerance(self) -> None:
        if self.tolerance is None:
            if self.capacity:
                raise UsageError("capacities make bytes even, which needs a tolerance (--by bytes --tolerance 5)")
            if self.by_bytes:
                raise UsageError(
                    "a plan by bytes makes the bytes of brokers even within a tolerance; add --tolerance 5, or leave "
                    "out --by bytes (then counts become even, and the fewest replicas move)"
                )
            return
        if not self.by_bytes:
            raise UsageError("a tolerance is one of bytes; add --by bytes, or leave out --tolerance")
        if not 0 <= self.tolerance < 1:
            raise UsageError(f"tolerance is {100 * self.tolerance:g} %; allowed are 0 to less than 100")
        wrong = [(number, size) for number, size in self.capacity if size < 1]
        if wrong:
            raise UsageError(f"broker {wrong[0][0]} has a capacity of {wrong[0][1]} bytes; the least is 1")

    @property
    def by_bytes(self) -> bool:
        """Return whether bytes become even within the tolerance, instead of the number of replicas."""
        return self.by == "bytes"

    @property
    def tolerance_millionths(self) -> int:
        """Return the tolerance as whole millionths, 0 without one."""
        return round((self.tolerance or 0) * 1_000_000)

    @property
    def is_even(self) -> bool:
        """Return whether loads become as even as the goal allows; else brokers may stay as uneven as they are."""
        return self.kind != "racks" and not (self.is_narrow and self.by_bytes)

    @property
    def is_narrow(self) -> bool:
        """Return whether only those partitions change that removed brokers and the factor ask for."""
        return self.kind in NARROW_KINDS


def with_added(view: ClusterView, goal: Goal) -> ClusterView:
    """Return the view with added brokers; refuse a conflicting rack, and cordoned or down brokers."""
    if not goal.add and view.totals is None:
        return view
    known = {one.id: one for one in view.brokers}
    for number, rack in goal.add:
        old = known.get(number)
        if old is not None and None not in (old.rack, rack) and old.rack != rack:
            raise PlanRefusedError(f"broker {number} is to be added on rack {rack!r}, but stands on rack {old.rack!r}")
        if old is not None and old.cordoned:
            raise PlanRefusedError(
                f"broker {number} is to be added, but all its log directories are cordoned; uncordon one first"
            )
        if number in view.seen_down:
            raise PlanRefusedError(
                f"broker {number} is to be added, but looks down ({view.seen_down[number].value}): a new replica there "
                "would never catch up; start it first"
            )
        rack = rack or dict(view.racks_given).get(number)
        known[number] = BrokerView(id=number, rack=rack) if old is None else attrs.evolve(old, rack=rack or old.rack)
    return attrs.evolve(view, brokers=tuple(known[number] for number in sorted(known)), totals=None)


def as_targeted(view: ClusterView) -> ClusterView:
    """Return the view as it is once every reassignment in progress is complete, leaders where they are if they can."""
    table = view.partitions
    if table.removing is None and table.adding is None:
        return view
    gone = np.zeros(table.replicas.shape, dtype=np.bool_)
    if table.removing is not None:
        for column in range(table.removing.shape[1]):
            gone |= (table.replicas == table.removing[:, column : column + 1]) & (table.replicas >= 0)
    order = np.argsort(gone | (table.replicas < 0), axis=1, kind="stable")
    replicas = np.take_along_axis(np.where(gone, PAD, table.replicas), order, axis=1)
    sizes = table.replica_size_bytes
    after = attrs.evolve(
        table,
        replicas=replicas,
        replica_size_bytes=None if sizes is None else np.take_along_axis(sizes, order, axis=1),
        isr=_isr_at_target(table, replicas),
        adding=None,
        removing=None,
    )
    return attrs.evolve(view, partitions=after)


def _isr_at_target(table: PartitionTable, replicas: Int32Array) -> Int32Array | None:
    """Return the ISR once the replicas that are being added have joined it, and the removed ones have left."""
    if table.isr is None or table.adding is None:
        return table.isr
    isr = np.concatenate([table.isr, np.where(members(table.adding, table.isr), PAD, table.adding)], axis=1)
    return packed(np.where(members(isr, replicas), isr, PAD))


def shares(view: ClusterView, goal: Goal) -> Int64Array:
    """Return the capacity of each broker by which bytes become even, int64[B], 1 for each where none is given.

    Capacities are divided by what all have in common, so that products with bytes stay small.
    """
    if not goal.capacity:
        return np.ones(len(view.brokers), dtype=np.int64)
    given = dict(goal.capacity)
    found = np.array([given.get(one.id, 0) for one in view.brokers], dtype=np.int64)
    return found // max(int(np.gcd.reduce(found)), 1)


def copy_sizes(view: ClusterView) -> Int64Array:
    """Return the bytes of one new replica of each partition, int64[P], -1 where not known."""
    if view.partitions.size_bytes is None and view.partitions.replica_size_bytes is None:
        return np.full(view.partitions.count, SIZE_UNKNOWN, dtype=np.int64)
    every = np.arange(view.partitions.count)
    return Reassignment(view=view, rows=every, replicas=view.partitions.replicas).copy_bytes


def excluded_rows(view: ClusterView, goal: Goal) -> NDArray[np.bool_]:
    """Return which partitions belong to an excluded topic, bool[P]."""
    names = set(goal.exclude_topics)
    flags = np.array([topic.name in names for topic in view.topics] + [False], dtype=np.bool_)
    return np.asarray(flags[view.partitions.topic_index])
