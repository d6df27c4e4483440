"""Provide Hypothesis strategies for clusters and placements, and check any placement policy in one call.

They are small, as shrunken counterexamples are read by people, and they lean towards what breaks placers: ids with
gaps, racks of unequal size, brokers without a rack, fenced brokers, factors equal to the number of brokers, rack names
that Java and Python order differently, calls that do not begin at partition 0. What is drawn is always valid;
assignments break rules only when asked to.

    from placement.strategies import check_placer
    check_placer(MyPlacer())

It passes in silence, or raises `PlacerFailure` with the smallest case found and what it breaks. The search
is derandomised: the same policy gives the same result on every run.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from broker.errors import MissingExtraError, RefusedError

try:
    from hypothesis import Phase, given, reject, settings
    from hypothesis import strategies as st
except ImportError:
    raise MissingExtraError("placement.strategies", "Hypothesis", "strategies") from None

from broker.cluster import BrokerView, ClusterView, Int32Array, PartitionTable, TopicView
from broker.entropy import SplitMix64
from broker.ids import INT64_MAX, BrokerId
from placement.balance.constraints import STANDARD, Constraint, Violation, check
from placement.spec import Assignment, PlacementSpec, ReplicaPlacer

# Java orders by UTF-16 unit: "10" < "9" < "A" < "_" < "a" < "é" < an emoji < "\uffee"; Python puts the emoji last.
RACK_NAMES: Final = ("a", "b", "A", "_", "9", "10", "é", "\N{GRINNING FACE}", "\uffee")
"""Rack names whose order differs between numbers, code points and Java's UTF-16 units."""

SEED_MAX: Final = INT64_MAX


class RackPattern(enum.Enum):
    """Choose which of the drawn brokers have a rack."""

    ANY = "any of the others"
    NONE = "no broker has a rack"
    ALL = "every broker has a rack, racks of any sizes"
    EVEN = "every broker has a rack, racks of equal size"
    SOME = "some brokers have a rack, at least one, and at least one has none"


@attrs.frozen
class Case:
    """Hold one small case: a request to a placer, and its brokers."""

    brokers: tuple[BrokerView, ...]
    spec: PlacementSpec
    seed: int


class PlacerFailure(AssertionError):  # noqa: N818 - a finding about a policy, not an error of the caller.
    """Report that a policy broke a constraint; `case` is the smallest case found, `violations` the constraints broken.

    `rows` is what the policy answered, None when it has not the shape asked for.
    """

    def __init__(self, case: Case, rows: Int32Array | None, violations: tuple[Violation, ...]) -> None:
        self.case = case
        self.rows = rows
        self.violations = violations
        super().__init__(_told(case, rows, violations))


def rack_names() -> st.SearchStrategy[str]:
    """Return rack names, simple ones first."""
    return st.sampled_from(RACK_NAMES)


def entropies() -> st.SearchStrategy[SplitMix64]:
    """Return generators of this library's own; draw a new one for each call to compare."""
    return st.integers(0, SEED_MAX).map(SplitMix64)


@st.composite
def brokers(
    draw: st.DrawFn,
    *,
    count_min: int = 1,
    count_max: int = 8,
    racks: RackPattern = RackPattern.ANY,
    fenced: bool = True,
) -> tuple[BrokerView, ...]:
    """Return brokers in ascending order of id, at least one unfenced; `fenced` allows fenced ones."""
    kinds = _KINDS if count_max > 1 else _KINDS[:-1]
    kind = draw(st.sampled_from(kinds)) if racks is RackPattern.ANY else racks
    least = max(count_min, 2 if kind is RackPattern.SOME else 1)
    one = st.tuples(st.integers(0, 3), rack_names(), st.booleans() if fenced else st.just(False), st.booleans())
    # A list of whole brokers, so that shrinking can leave one out.
    drawn = draw(st.lists(one, min_size=least, max_size=count_max))
    names = draw(_even_racks(len(drawn))) if kind is RackPattern.EVEN else _rack_column(kind, drawn)
    out = [is_out for _, _, is_out, _ in drawn]
    if all(out):
        out[0] = False
    ids = np.cumsum([gap + 1 for gap, _, _, _ in drawn]) - 1
    return tuple(
        BrokerView(id=BrokerId(number), rack=rack, fenced=is_out)
        for number, rack, is_out in zip(ids.tolist(), names, out, strict=True)
    )


_KINDS: Final = (RackPattern.NONE, RackPattern.ALL, RackPattern.EVEN, RackPattern.SOME)


def _rack_column(kind: RackPattern, drawn: Sequence[tuple[int, str, bool, bool]]) -> list[str | None]:
    if kind is RackPattern.NONE:
        return [None] * len(drawn)
    names: list[str | None] = [None if kind is RackPattern.SOME and bare else rack for _, rack, _, bare in drawn]
    if kind is RackPattern.SOME:
        if None not in names:
            names[-1] = None
        if not any(names):
            names[0] = drawn[0][1]
    return names


@st.composite
def _even_racks(draw: st.DrawFn, count: int) -> list[str | None]:
    divisors = [number for number in range(1, min(count, len(RACK_NAMES)) + 1) if count % number == 0]
    rack_count = draw(st.sampled_from(divisors))
    chosen = draw(st.lists(rack_names(), min_size=rack_count, max_size=rack_count, unique=True))
    return [chosen[place % rack_count] for place in range(count)]


def specs(
    *, factor_max: int, partition_count_max: int = 24, start_partition_max: int = 12
) -> st.SearchStrategy[PlacementSpec]:
    """Return requests of at least one partition and a factor of 1..factor_max."""
    return st.builds(
        PlacementSpec,
        start_partition=st.integers(0, start_partition_max),
        partition_count=st.integers(1, partition_count_max),
        replication_factor=st.integers(1, factor_max),
    )


@st.composite
def cases(draw: st.DrawFn, *, racks: RackPattern = RackPattern.ANY, fenced: bool = True) -> Case:
    """Return a request that the unfenced brokers can hold, the brokers, and a seed."""
    some = draw(brokers(racks=racks, fenced=fenced))
    usable = sum(not broker.fenced for broker in some)
    return Case(some, draw(specs(factor_max=usable)), draw(st.integers(0, SEED_MAX)))


@st.composite
def assignments(
    draw: st.DrawFn, some: Sequence[BrokerView], *, partition_count_max: int = 12, distinct: bool = True
) -> Assignment:
    """Return one to three topics on brokers `some`, factors from 1; `distinct` gives each row distinct brokers."""
    topic_count = draw(st.integers(1, 3))
    ids = [int(broker.id) for broker in some]
    row = st.lists(st.sampled_from(ids), min_size=1, max_size=min(len(ids), 4) if distinct else 4, unique=distinct)
    rows = draw(st.lists(st.tuples(st.integers(0, topic_count - 1), row), max_size=partition_count_max))
    rows.sort(key=lambda pair: pair[0])
    width = max((len(replicas) for _, replicas in rows), default=0)
    seen = [0] * topic_count
    partition_ids = []
    for topic, _ in rows:
        partition_ids.append(seen[topic])
        seen[topic] += 1
    padded = [replicas + [-1] * (width - len(replicas)) for _, replicas in rows]
    return Assignment(
        topics=tuple(f"t{index}" for index in range(topic_count)),
        topic_index=[topic for topic, _ in rows],
        partition_ids=partition_ids,
        replicas=np.array(padded, dtype=np.int32).reshape(len(rows), width),
    )


@st.composite
def views(draw: st.DrawFn, *, racks: RackPattern = RackPattern.ANY) -> ClusterView:
    """Return a small cluster with leaders, ISRs, settings and sizes, any of which may be absent."""
    some = draw(brokers(racks=racks))
    held = draw(assignments(some))
    rows = [[number for number in row if number >= 0] for row in held.replicas.tolist()]
    in_sync = [draw(st.lists(st.sampled_from(row), unique=True)) for row in rows]
    leaders = [draw(st.sampled_from([*members, -1])) for members in in_sync]
    sizes = draw(st.none() | st.lists(st.integers(0, 2**50), min_size=len(rows), max_size=len(rows)))
    least = draw(st.lists(st.none() | st.integers(1, 3), min_size=len(held.topics), max_size=len(held.topics)))
    known = draw(st.booleans())
    return ClusterView(
        name="drawn",
        source="strategy",
        format="example",
        brokers=some,
        topics=tuple(
            TopicView(name, min_insync_replicas=minimum) for name, minimum in zip(held.topics, least, strict=True)
        ),
        partitions=PartitionTable(
            topic_index=held.topic_index,
            partition_ids=held.partition_ids,
            replicas=held.replicas,
            leader=leaders if known else None,
            isr=_padded(in_sync) if known else None,
            size_bytes=sizes,
        ),
    )


def searching(example_count: int) -> settings:
    """Return Hypothesis settings for a policy check: the same examples every time, shrunk to the smallest failure."""
    return settings(
        max_examples=example_count,
        derandomize=True,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
    )


def check_placer(
    placer: ReplicaPlacer,
    *,
    constraints: Sequence[Constraint] = STANDARD,
    racks: RackPattern = RackPattern.ANY,
    fenced: bool = True,
    example_count: int = 200,
) -> None:
    """Run `placer` on many small cases; raise `PlacerFailure` with the smallest that breaks one of `constraints`.

    Besides the constraints, the result must have the shape asked for, and the same seed must give the same rows.
    The placer may refuse cases with a RefusedError; it is hypothesis that complains if it refuses almost all.
    """

    @searching(example_count)
    @given(cases(racks=racks, fenced=fenced))
    def property_holds(case: Case) -> None:
        _check_case(placer, case, constraints)

    try:
        property_holds()
    except PlacerFailure as failure:
        # Raised anew: Hypothesis's own notes repeat the case in its words.
        raise PlacerFailure(failure.case, failure.rows, failure.violations) from None


def _check_case(placer: ReplicaPlacer, case: Case, constraints: Sequence[Constraint]) -> None:
    try:
        rows = placer.place(case.spec, case.brokers, SplitMix64(case.seed))
    except RefusedError:
        reject()
    asked = (case.spec.partition_count, case.spec.replication_factor)
    if not isinstance(rows, np.ndarray) or rows.dtype.kind != "i":
        kind = f"an array of {rows.dtype}" if isinstance(rows, np.ndarray) else type(rows).__name__
        raise PlacerFailure(case, None, (_broken("array", f"{kind} where an array of int32 is asked for"),))
    if rows.shape != asked:
        raise PlacerFailure(case, None, (_broken("shape", f"shape {rows.shape} where {asked} is asked for"),))
    again = placer.place(case.spec, case.brokers, SplitMix64(case.seed))
    if not np.array_equal(rows, again):
        raise PlacerFailure(case, rows, (_broken("same-seed", "the same seed gave other rows the second time"),))
    assignment = Assignment.of_topic("t", rows, start_partition=case.spec.start_partition)
    found = check(assignment, case.brokers, constraints)
    if found:
        raise PlacerFailure(case, rows, tuple(violations.explain(1)[0] for violations in found))


def _broken(name: str, detail: str) -> Violation:
    return Violation(constraint=name, topic=None, partition=None, brokers=(), racks=(), detail=detail)


def _padded(rows: Sequence[Sequence[int]]) -> Int32Array:
    width = max((len(row) for row in rows), default=0)
    return np.array([[*row, *[-1] * (width - len(row))] for row in rows], dtype=np.int32).reshape(len(rows), width)


def _told(case: Case, rows: Int32Array | None, violations: tuple[Violation, ...]) -> str:
    spec = case.spec
    end = spec.start_partition + spec.partition_count
    lines = [f"{violation.constraint}: {_place(violation)}{violation.detail}" for violation in violations]
    lines += [f"  broker {broker.id}: {_described(broker)}" for broker in case.brokers]
    lines.append(f"  asked: partitions {spec.start_partition} to {end - 1}, factor {spec.replication_factor}")
    if rows is not None:
        lines.append(f"  placed: {rows.tolist()}, seed {case.seed}")
    return "\n".join(lines)


def _place(violation: Violation) -> str:
    return "" if violation.partition is None else f"partition {violation.partition}: "


def _described(broker: BrokerView) -> str:
    rack = "no rack" if broker.rack is None else f"rack {broker.rack!r}"
    return rack + (", fenced" if broker.fenced else "")
