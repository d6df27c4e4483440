"""Define one fault of a plan: when it starts, what it strikes, for how long; and what a cluster can be struck by.

A fault that nothing of a cluster can be struck by is refused when it is made or, once the cluster is known, by
`check_plan`. A broker may be named by its role at the time of the fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from broker.errors import UsageError
from broker.ids import INT32_MAX
from broker.units import DurationMs, TimeMs
from broker.values import changed_repr
from replication.simulation.options import FaultKind, Options

OF_PARTITIONS: Final = (
    FaultKind.REASSIGN,
    FaultKind.DELETE_RECORDS,
    FaultKind.CANCEL_REASSIGNMENT,
    FaultKind.DELETE_TOPIC,
)
OF_RACKS: Final = (FaultKind.RACK_OUTAGE, FaultKind.SPLIT_RACK)
_OF_CLUSTER: Final = (
    FaultKind.CONTROLLER_FAILOVER,
    FaultKind.CONTROLLER_AWAY,
    FaultKind.HOLD,
    FaultKind.SPLIT,
)
OF_BROKERS: Final = frozenset(FaultKind).difference(OF_PARTITIONS, OF_RACKS, _OF_CLUSTER)
"""The kinds whose target is a broker."""

HELD_KINDS: Final = (
    "AlterPartition",
    "AlterPartitionResponse",
    "MetadataFetchResponse",
    "Fetch",
    "FetchResponse",
    "BrokerRegistration",
    "BrokerHeartbeat",
    "Produce",
)
"""The messages that a HOLD may hold, chosen by `choice`."""


AT_ONCE: Final = frozenset(
    {
        FaultKind.CLOCK_JUMP,
        FaultKind.CONTROLLER_FAILOVER,
        FaultKind.DELETE_RECORDS,
        FaultKind.RETENTION,
        FaultKind.RETENTION_AT_CHANGE,
    }
)
"""The kinds that have no duration."""
_CHOOSING: Final = frozenset(
    {
        *(FaultKind.CRASH_AT_COMMIT, FaultKind.CRASH_AT_ISR, FaultKind.REASSIGN, FaultKind.CANCEL_REASSIGNMENT),
        *(FaultKind.DELETE_RECORDS, FaultKind.FULL_DISK, FaultKind.FAILED_DIRECTORY, FaultKind.SLOW),
        *(FaultKind.SLOW_DISK, FaultKind.SPLIT, FaultKind.SPLIT_RACK, FaultKind.ZOMBIE_CONTROLLER),
        FaultKind.CLOCK_DRIFT,
    }
)
"""The kinds of whose effect `choice` decides a part that has no name of its own."""


def _check_partition(_aim: Any, _field: Any, value: int) -> None:
    if type(value) is not int or value < 0:
        raise UsageError(f"the partition is {value!r}; allowed are whole numbers from 0 on")


@attrs.frozen(repr=False)
class LeaderOf:
    """Name the broker that leads a partition when the fault starts; with a topic, the partition's place in it."""

    partition: int = attrs.field(validator=_check_partition)
    topic: str = ""

    def __repr__(self) -> str:
        return changed_repr(self)


@attrs.frozen(repr=False)
class FollowerOf:
    """Name the first member of a partition's ISR that does not lead it when the fault starts."""

    partition: int = attrs.field(validator=_check_partition)
    topic: str = ""

    def __repr__(self) -> str:
        return changed_repr(self)


Aim = LeaderOf | FollowerOf
"""A broker that is known only when the fault starts."""


@attrs.frozen(init=False, repr=False)
class Fault:
    """Describe one fault: when it starts, its kind, what it strikes, and how long it lasts.

    `target` is the number of the broker, rack or partition that is struck, by the kind; `aim` names a broker that is
    found when the fault starts. `choice` decides what else the kind leaves open: see `FaultKind`.
    Raises UsageError for a value that is never allowed.

    >>> Fault(5_000, FaultKind.KILL, broker=LeaderOf(0), duration_ms=90_000)
    Fault(start_ms=5000, kind=FaultKind.KILL, broker=LeaderOf(partition=0), duration_ms=90000)
    >>> print(Fault(5_000, FaultKind.CLOCK_JUMP, broker=1, jump_ms=-60_000))
    at 5000 ms CLOCK_JUMP broker 1 by -60000 ms
    """

    start_ms: TimeMs
    kind: FaultKind
    target: int
    duration_ms: DurationMs
    choice: int
    aim: Aim | None

    def __init__(
        self,
        start_ms: int,
        kind: FaultKind,
        target: int | None = None,
        duration_ms: int = 0,
        choice: int = 0,
        aim: Aim | None = None,
        *,
        broker: int | Aim | None = None,
        rack: int | None = None,
        partition: int | None = None,
        jump_ms: int | None = None,
        message: str | None = None,
    ) -> None:
        if not isinstance(kind, FaultKind):
            raise UsageError(f"the kind of a fault is {kind!r}; wanted is a FaultKind, such as FaultKind.KILL")
        if isinstance(broker, LeaderOf | FollowerOf):
            aim = broker
            broker = 0
        named = {"broker": broker, "rack": rack, "partition": partition, "target": target}
        given = {name: each for name, each in named.items() if each is not None}
        name = target_name(kind)
        if len(given) > 1 or not given.keys() <= {name, "target"}:
            raise UsageError(f"{kind.name} strikes {_one_of(name)}, and is given {' and '.join(given)}")
        if name and not given and aim is None:
            raise UsageError(f"{kind.name} strikes {_one_of(name)}; give {name}=")
        if aim is not None and (name != "broker" or not isinstance(aim, LeaderOf | FollowerOf)):
            raise UsageError(f"{kind.name} strikes {_one_of(name)}, and is given {aim!r}")
        if jump_ms is not None:
            choice = _choice(kind, FaultKind.CLOCK_JUMP, "jump_ms", choice, jump_ms)
        if message is not None:
            if message not in HELD_KINDS:
                raise UsageError(f"message {message!r} is never held; allowed are {', '.join(HELD_KINDS)}")
            choice = _choice(kind, FaultKind.HOLD, "message", choice, HELD_KINDS.index(message))
        where = next(iter(given.values()), 0)
        for what, value in (("start_ms", start_ms), (name or "target", where), ("duration_ms", duration_ms)):
            if type(value) is not int or value < 0:
                raise UsageError(f"{what} of {kind.name} is {value!r}; allowed are whole numbers from 0 on")
        if type(choice) is not int:
            raise UsageError(f"choice of {kind.name} is {choice!r}; allowed are whole numbers")
        self.__attrs_init__(TimeMs(start_ms), kind, where, DurationMs(duration_ms), choice, aim)

    def __str__(self) -> str:
        name = target_name(self.kind)
        words = [f"at {self.start_ms} ms {self.kind.name}"]
        if self.aim is not None:
            words.append(aim_text(self.aim))
        elif name:
            words.append(f"{name} {self.target}")
        if self.kind is FaultKind.HOLD:
            words.append(HELD_KINDS[self.choice % len(HELD_KINDS)])
        if self.kind is FaultKind.CLOCK_JUMP:
            words.append(f"by {self.choice} ms")
        elif self.kind not in AT_ONCE:
            words.append(f"for {self.duration_ms} ms")
        if self.kind in _CHOOSING:
            words.append(f"(choice {self.choice})")
        return " ".join(words)

    def fields(self) -> dict[str, object]:
        """Return the arguments that make this fault, by name; those with their defaults are left out."""
        name = target_name(self.kind)
        fields: dict[str, object] = {"start_ms": self.start_ms, "kind": self.kind}
        if name or self.target:
            fields[name or "target"] = self.target if self.aim is None else self.aim
        if self.duration_ms:
            fields["duration_ms"] = self.duration_ms
        if self.choice:
            fields["jump_ms" if self.kind is FaultKind.CLOCK_JUMP else "choice"] = self.choice
        return fields

    def __repr__(self) -> str:
        return f"Fault({', '.join(f'{name}={value!r}' for name, value in self.fields().items())})"


def kind_word(kind: FaultKind) -> str:
    """Return the word of a kind of fault on the command line, such as "power-loss"."""
    return kind.name.lower().replace("_", "-")


def target_name(kind: FaultKind) -> str:
    """Return what a kind of fault strikes: "broker", "rack", "partition", or "" for the whole cluster."""
    if kind in OF_PARTITIONS:
        return "partition"
    if kind in OF_RACKS:
        return "rack"
    return "" if kind in _OF_CLUSTER and kind is not FaultKind.SPLIT else "broker"


def aim_text(aim: Aim) -> str:
    """Return the words for a broker that is found when the fault starts."""
    role = "the leader" if isinstance(aim, LeaderOf) else "a follower in sync"
    return f"{role} of partition {aim.partition}{f' of topic {aim.topic}' if aim.topic else ''}"


def _one_of(name: str) -> str:
    return f"a {name}" if name else "the whole cluster"


def _choice(kind: FaultKind, wanted: FaultKind, name: str, choice: int, value: int) -> int:
    if kind is not wanted or choice:
        raise UsageError(f"{name} is of {wanted.name} alone, in the place of choice; the fault is {kind.name}")
    return value


def check_plan(plan: Iterable[Fault], options: Options) -> tuple[Fault, ...]:
    """Return a plan as a tuple; raise UsageError for a fault that strikes what the cluster does not have."""
    if isinstance(plan, Fault):
        raise UsageError("a plan is a tuple of faults, and one fault is given; write (fault,)")
    checked = tuple(plan)
    counts = {"rack": options.racks, "partition": options.partition_count or INT32_MAX}
    for fault in checked:
        if not isinstance(fault, Fault):
            raise UsageError(f"a plan holds faults, and {fault!r} is none")
        name = target_name(fault.kind)
        where, count = fault.target, counts.get(name, INT32_MAX)
        if fault.aim is not None and not fault.aim.topic:
            name, where, count = "partition", fault.aim.partition, counts["partition"]
        if name == "broker" and where not in options.ids:
            what = f"{fault.kind.name} strikes broker {where}; the cluster has brokers {options.ids_shown}"
            raise UsageError(what)
        if where >= count:
            raise UsageError(f"{fault.kind.name} strikes {name} {where}; the cluster has {name}s 0 to {count - 1}")
    return checked


def fault_lines(kinds: Mapping[str, FaultKind]) -> list[str]:
    """Return a table of kinds by name: what a fault of each strikes, and what happens.

    >>> print(*fault_lines({"kill": FaultKind.KILL, "failover": FaultKind.CONTROLLER_FAILOVER}), sep="\\n")
    kind      strikes  what happens
    kill      broker   the process dies; the disk keeps all that was written
    failover  cluster  another controller takes over
    """
    width = max(map(len, kinds))
    rows = [("kind", "strikes", "what happens")]
    rows += [(name, target_name(kind) or "cluster", kind.value) for name, kind in kinds.items()]
    struck_width = max(len(struck) for _, struck, _ in rows)
    return [f"{name:<{width}}  {struck:<{struck_width}}  {what}" for name, struck, what in rows]
