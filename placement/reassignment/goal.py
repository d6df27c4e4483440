"""Define what a plan should reach, and refuse a goal that the cluster cannot reach.

What it decides: which brokers may hold replicas afterwards, which topics may change, how many replicas a partition
should have, and whether that is possible.

    balance  loads as even as the rules allow
    add      the same with brokers that join
    factor   the same with another replication factor
    drain    brokers give up all they hold; the loads of the others become no more uneven
    racks    violations of the rack rule end; loads become no more uneven

Constraints: nothing is mended silently. A refusal names the rule, the numbers and what would do. A fenced broker keeps
what it holds and receives nothing; a broker that is removed keeps nothing.

Example: `Goal(kind="drain", remove=(BrokerId(5),))`.

Left out: goals by network or processor load, which no dump states.

Source: ours; the cases are those of Cruise Control's remove_broker, add_broker and topic_configuration, topicmappr's
rebuild, and kafka-reassign-partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import PAD, SIZE_UNKNOWN, BrokerView, ClusterView, Int32Array, Int64Array
from broker.errors import RefusedError, UsageError
from broker.ids import BrokerId
from broker.row_flags import any_in_row
from broker.wording import counted
from placement.reassignment.reassignment import Reassignment

MEASURES: Final = ("replicas", "bytes")
"""What a plan moves the least of."""

KINDS: Final = ("balance", "drain", "add", "racks", "factor")
EVEN_KINDS: Final = ("balance", "add", "factor")
"""The kinds that make loads as even as they can be; the others leave brokers as they are where they can."""

_SHOWN_MAX: Final = 5


class PlanRefusedError(RefusedError):
    """A goal cannot be reached, or its plan could not be carried out; the text says what would do."""


class MissingInputError(UsageError):
    """Say that the input lacks what a goal needs: sizes, racks, capacities, or some of the partitions."""


@attrs.frozen(kw_only=True)
class Goal:
    """Describe what a plan should reach.

    `remove` are drained; `add` are brokers with their racks, None for none; `factor` is the replicas that each
    partition should have. Topics of `exclude_topics` stay as they are. With `only_leaders` no replica moves. With
    `per_topic` each topic is spread evenly by itself as well; by bytes only with a `tolerance`. With
    `new_only_receives` only the brokers of `add` receive replicas. With `strict_racks` a partition with more replicas
    than racks is refused. A plan moves the least of what `by` says, replicas or bytes. What becomes even is the number
    of replicas, or, with a `tolerance` (by bytes only), the bytes: each broker ends within that fraction of its
    reachable mean. With `capacity` bytes become even in proportion to these disk bytes, which every broker that stays
    must have.
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
            raise UsageError(f"{_brokers(both)} cannot be both added and removed")
        if self.new_only_receives and not self.add:
            raise UsageError("only new brokers may receive, but none is added (--add 7:rack-a)")
        if self.only_leaders and (self.remove or self.add or self.factor is not None):
            raise UsageError("a plan of leaders alone moves no replica: it can neither add, remove nor change a factor")
        if self.by == "bytes" and self.only_leaders:
            raise UsageError("a plan of leaders alone copies no byte; leave out --by bytes, or --only-leaders")
        if self.by == "bytes" and self.per_topic and self.tolerance is None:
            raise UsageError(
                "a plan by bytes to even counts cannot spread each topic as well: its search keeps the cheapest move "
                "between any two brokers, and would need it for each topic; add --tolerance 5 (then bytes become even "
                "and each topic's replicas too), or leave out --by bytes (then the fewest replicas move), or "
                "--per-topic"
            )
        self._check_tolerance()
        if self.only_leaders and (self.kind == "racks" or self.per_topic or self.strict_racks):
            raise UsageError("a plan of leaders alone moves no replica: it changes no racks, nor replicas of a topic")

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
            return
        if self.by != "bytes":
            raise UsageError("a tolerance is one of bytes; add --by bytes, or leave out --tolerance")
        if not 0 <= self.tolerance < 1:
            raise UsageError(f"tolerance is {100 * self.tolerance:g} %; allowed are 0 to less than 100")
        wrong = [(number, size) for number, size in self.capacity if size < 1]
        if wrong:
            raise UsageError(f"broker {wrong[0][0]} has a capacity of {wrong[0][1]} bytes; the least is 1")

    @property
    def is_banded(self) -> bool:
        """Return whether bytes become even within a tolerance, instead of the number of replicas."""
        return self.tolerance is not None

    @property
    def tolerance_millionths(self) -> int:
        """Return the tolerance as whole millionths, 0 without one."""
        return round((self.tolerance or 0) * 1_000_000)

    @property
    def is_even(self) -> bool:
        """Return whether loads become as even as they can be."""
        return self.kind in EVEN_KINDS


def with_added(view: ClusterView, goal: Goal) -> ClusterView:
    """Return the view with the brokers that join; refuse one whose rack is known to be another."""
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
        adding=None,
        removing=None,
    )
    return attrs.evolve(view, partitions=after)


def check_view(view: ClusterView, goal: Goal) -> None:
    """Refuse a view that a plan cannot be made for: partitions unknown, on the move, or with observers.

    Raises MissingInputError for what the input lacks, such as sizes, PlanRefusedError for what stands in the way.
    """
    if not view.partitions_complete:
        raise MissingInputError(f"{view.name} lists only some of its partitions; a plan needs all of them")
    _check_names(view, goal)
    _check_racks(view, goal)
    table = view.partitions
    chosen = ~excluded_rows(view, goal)
    moving = _any(table.adding, table.count) | _any(table.removing, table.count)
    for rows, what, remedy in (
        (
            moving,
            "in a reassignment that is not complete",
            "wait for it, cancel it, or plan from its target (--from-target)",
        ),
        (
            chosen & _any(table.observers, table.count),
            "with observers, which a plan would lose",
            "exclude their topics",
        ),
        (chosen & ~_any(table.replicas, table.count), "without a replica", "exclude their topics"),
    ):
        if rows.any():
            raise PlanRefusedError(f"{counted(int(rows.sum()), 'partition')} {what} ({_named(view, rows)}); {remedy}")
    if goal.factor is not None:
        _check_min_isr(view, goal.factor, chosen)
    if goal.by == "bytes":
        _check_sizes(view, goal, chosen)
        _check_capacity(view, goal)


def _check_capacity(view: ClusterView, goal: Goal) -> None:
    """Refuse capacities that leave out a broker that holds replicas afterwards."""
    known = {number for number, _ in goal.capacity}
    stay = {one.id for one in view.brokers if one.is_active} | {number for number, _ in goal.add}
    unknown = sorted(stay - known - set(goal.remove))
    if goal.capacity and unknown:
        raise MissingInputError(
            f"{_brokers(unknown)} {'has' if len(unknown) == 1 else 'have'} no known disk bytes, in proportion to which "
            "bytes would become even; state them in --capacity (broker -1 is every other one), or leave it out"
        )


def shares(view: ClusterView, goal: Goal) -> Int64Array:
    """Return the capacity of each broker by which bytes become even, int64[B], 1 for each where none is given.

    Capacities are divided by what all have in common, so that products with bytes stay small.
    """
    if not goal.capacity:
        return np.ones(len(view.brokers), dtype=np.int64)
    given = dict(goal.capacity)
    found = np.array([given.get(one.id, 0) for one in view.brokers], dtype=np.int64)
    return found // max(int(np.gcd.reduce(found)), 1)


def _check_sizes(view: ClusterView, goal: Goal, chosen: NDArray[np.bool_]) -> None:
    unknown = (chosen | goal.is_banded) & (copy_sizes(view) < 0)
    if unknown.any():
        remedy = "" if goal.is_banded else ", or exclude their topics"
        raise MissingInputError(
            f"a plan by bytes needs sizes, and {counted(int(unknown.sum()), 'partition')} "
            f"{'has' if unknown.sum() == 1 else 'have'} none ({_named(view, unknown)}); give a file that states them "
            f"(--sizes){remedy}"
        )


def copy_sizes(view: ClusterView) -> Int64Array:
    """Return the bytes of one new replica of each partition, int64[P], -1 where not known."""
    if view.partitions.size_bytes is None and view.partitions.replica_size_bytes is None:
        return np.full(view.partitions.count, SIZE_UNKNOWN, dtype=np.int64)
    every = np.arange(view.partitions.count)
    return Reassignment(view=view, rows=every, replicas=view.partitions.replicas).copy_bytes


def _check_names(view: ClusterView, goal: Goal) -> None:
    strangers = sorted(set(goal.remove) - {one.id for one in view.brokers})
    if strangers:
        listed = ", ".join(str(one.id) for one in view.brokers[:10]) + (", …" if len(view.brokers) > 10 else "")
        raise UsageError(f"{_brokers(strangers)} cannot be removed: the cluster's brokers are {listed}")
    unknown = sorted(set(goal.exclude_topics) - {topic.name for topic in view.topics})
    if unknown:
        raise UsageError(f"topic {unknown[0]!r} cannot be excluded: {view.name} has no such topic")


def _check_racks(view: ClusterView, goal: Goal) -> None:
    """Refuse a goal that asks for racks where no broker has one."""
    known = bool(view.racks) or any(rack is not None for _, rack in goal.add)
    if known or not (goal.kind == "racks" or goal.strict_racks):
        return
    what = "strict racks" if goal.strict_racks else "goal racks"
    raise MissingInputError(
        f"{what}: none of the {counted(len(view.brokers), 'broker')} of {view.name} has a known rack (--racks FILE)"
    )


def _check_min_isr(view: ClusterView, factor: int, chosen: NDArray[np.bool_]) -> None:
    for place, topic in enumerate(view.topics):
        least = topic.min_insync_replicas
        if least is not None and least > factor and bool((chosen & (view.partitions.topic_index == place)).any()):
            raise PlanRefusedError(
                f"topic {topic.name} has min.insync.replicas {least}: with {counted(factor, 'replica')} no write with "
                f"acks=all would succeed; lower it, choose a factor of at least {least}, or exclude the topic"
            )


def excluded_rows(view: ClusterView, goal: Goal) -> NDArray[np.bool_]:
    """Return which partitions belong to an excluded topic, bool[P]."""
    names = set(goal.exclude_topics)
    flags = np.array([topic.name in names for topic in view.topics] + [False], dtype=np.bool_)
    return np.asarray(flags[view.partitions.topic_index])


def check_brokers(
    view: ClusterView,
    goal: Goal,
    live: NDArray[np.bool_],
    *,
    wanted: Int64Array,
    held: Int64Array,
    had_live: NDArray[np.bool_],
) -> None:
    """Refuse factors that the live brokers, or with strict racks their racks, cannot hold.

    `live` bool[B] may hold replicas; `wanted` int64[P] replicas on live brokers, 0 where nothing changes, besides
    `held` int64[P] that stay on fenced ones; `had_live` bool[P] tells which partitions have one that is not.
    """
    most = int(wanted.max(initial=0))
    count = int(np.count_nonzero(live))
    if not count:
        raise PlanRefusedError(
            f"none of the {counted(len(view.brokers), 'broker')} is live and stays; add one, or keep one"
        )
    bare = (wanted == 0) & (held > 0) & had_live & ~excluded_rows(view, goal)
    if bare.any():
        raise PlanRefusedError(
            f"{counted(int(bare.sum()), 'partition')} ({_named(view, bare)}) would keep only replicas on fenced "
            "brokers; bring these brokers back, or remove them too (--remove)"
        )
    if most > count:
        row = int(np.argmax(wanted))
        stays = f" besides {int(held[row])} that stay on fenced brokers" if held[row] else ""
        raise PlanRefusedError(
            f"{_partition(view, row)} needs {most} live brokers{stays}, and {count} remain; "
            f"{most - count} more, or a smaller factor (--factor {count + int(held[row])})"
        )
    if not goal.strict_racks:
        return
    racks = sorted({one.rack for one, is_live in zip(view.brokers, live, strict=True) if is_live and one.rack})
    alone = sum(one.rack is None and bool(is_live) for one, is_live in zip(view.brokers, live, strict=True))
    if racks and most > len(racks) + alone:
        raise PlanRefusedError(
            f"{_partition(view, int(np.argmax(wanted)))} has {most} replicas for {counted(len(racks), 'rack')} "
            f"({', '.join(racks[:_SHOWN_MAX])}{', …' if len(racks) > _SHOWN_MAX else ''}); "
            f"{counted(most - len(racks) - alone, 'more rack')}, or no --strict-racks: then each rack gets at least one"
        )


def check_pinned(view: ClusterView, goal: Goal, removed: NDArray[np.bool_], rows: Int32Array) -> None:
    """Refuse to drain a broker that holds replicas of excluded topics; `rows` int32[P, W] are positions of brokers."""
    left = np.append(removed, False)[rows] & excluded_rows(view, goal)[:, None]
    if left.any():
        row = int(np.argmax(any_in_row(left)))
        broker = int(view.broker_ids[rows[row][left[row]][0]])
        raise PlanRefusedError(
            f"broker {broker} cannot be removed: it holds {_partition(view, row)} of an excluded topic "
            f"({counted(int(left.sum()), 'such replica')} on removed brokers); do not exclude the topic"
        )


def refuse_row(view: ClusterView, goal: Goal, row: int) -> PlanRefusedError:
    """Return the refusal of a plan because the partition at `row` has no place."""
    if goal.new_only_receives:
        return _refuse_new_only(view, goal, row)
    remedy = "add brokers"
    cordoned = [int(one.id) for one in view.brokers if one.cordoned and one.is_active and one.id not in goal.remove]
    if cordoned:
        remedy = f"{_brokers(cordoned)} may receive nothing (all log directories cordoned): uncordon one, or {remedy}"
    return PlanRefusedError(f"{_partition(view, row)} can stand nowhere without breaking a rule; {remedy}")


def _refuse_new_only(view: ClusterView, goal: Goal, row: int) -> PlanRefusedError:
    """Return the refusal of a plan in which the partition at `row` needs more than the new brokers."""
    held = [int(number) for number in view.partitions.replicas[row].tolist() if number >= 0]
    new = sorted({number for number, _ in goal.add})
    factor = counted(goal.factor or len(held), "replica")
    rule = f"{factor} on as many racks as can be" if view.racks else factor
    mend = ", or mend racks first (--goal racks)" if view.racks and goal.kind != "racks" else ""
    return PlanRefusedError(
        f"{_partition(view, row)} is on {_on_racks(view, held)}, and only {_on_racks(view, new)} may receive, which is "
        f"too few for {rule}; let other brokers receive too (leave out --new-only-receives){mend}"
    )


def _on_racks(view: ClusterView, ids: Sequence[int]) -> str:
    """Return brokers with the racks that are known, such as "brokers 2 (rack a), 7"."""
    racks = {int(one.id): one.rack for one in view.brokers}
    named = [str(number) if racks.get(number) is None else f"{number} (rack {racks[number]})" for number in ids]
    shown = ", ".join(named[:_SHOWN_MAX]) + (", …" if len(named) > _SHOWN_MAX else "")
    return ("broker " if len(ids) == 1 else "brokers ") + shown


def check_sources(view: ClusterView, goal: Goal) -> None:
    """Refuse to remove brokers that are fenced and hold the only replicas in sync: nothing could be copied."""
    isr = view.partitions.isr
    if isr is None or not goal.remove:
        return
    ids = view.broker_ids
    dead = ids[np.array([not one.is_active for one in view.brokers], dtype=np.bool_)]
    gone = np.isin(isr, np.intersect1d(dead, np.array(goal.remove, dtype=np.int32)))
    alive = (isr >= 0) & ~np.isin(isr, dead)
    lost = any_in_row(gone) & ~any_in_row(alive) & ~excluded_rows(view, goal)
    if lost.any():
        raise PlanRefusedError(
            f"{counted(int(lost.sum()), 'partition')} ({_named(view, lost)}) have their only replicas in sync on "
            "fenced brokers that are to be removed; bring one of them back first"
        )


def _brokers(ids: Sequence[int]) -> str:
    shown = ", ".join(map(str, ids[:_SHOWN_MAX])) + (", …" if len(ids) > _SHOWN_MAX else "")
    return ("broker " if len(ids) == 1 else "brokers ") + shown


def _partition(view: ClusterView, row: int) -> str:
    table = view.partitions
    return f"{view.topics[int(table.topic_index[row])].name}-{int(table.partition_ids[row])}"


def _named(view: ClusterView, rows: NDArray[np.bool_]) -> str:
    return _listed((_partition(view, row) for row in np.flatnonzero(rows)[:_SHOWN_MAX].tolist()), int(rows.sum()))


def _listed(names: Iterable[str], count: int) -> str:
    return ", ".join(names) + (", …" if count > _SHOWN_MAX else "")


def _any(column: Int32Array | None, count: int) -> NDArray[np.bool_]:
    return np.zeros(count, dtype=np.bool_) if column is None else any_in_row(column != PAD)
