"""Generate partitions, elections, histories and faults for Hypothesis, and check any election policy in one call.

They are small, and biased towards the states that break rules: ISRs of one, empty ISRs with eligible replicas, several
brokers fenced at once, a dead last leader. A plan shrinks by leaving faults out first, then to earlier and shorter ones
of kinds declared earlier. `check_policy(my_policy)` returns nothing, or raises `PolicyFailure` with the smallest ballot
on which a policy elects a leader that is dead, or one that lacks records although a complete one is alive; the search
is derandomised. A property of whole clusters is written as a Hypothesis test:

    @given(st.data())
    def test_nothing_is_lost(data):
        options = data.draw(clusters())
        plan = data.draw(fault_plans(options))
        assert not run(options, plan).is_broken
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from operator import itemgetter
from typing import Final

import attrs

from broker.errors import MissingExtraError

try:
    from hypothesis import given
    from hypothesis import strategies as st
except ImportError:
    raise MissingExtraError("replication.strategies", "Hypothesis", "strategies") from None

from broker.ids import NO_LEADER, BrokerId
from broker.units import DurationMs, TimeMs
from placement.strategies import searching
from replication.roles.settings import RoleSettings
from replication.rules.controller_events import directories_assigned, fenced, restarted_uncleanly, unfenced
from replication.rules.election import Ballot, Elected, Election, ElectionPolicy, PolicyError, check_elected, elect
from replication.rules.partition import PartitionState
from replication.rules.settings import PartitionSettings
from replication.rules.switches import CURRENT, Rules
from replication.simulation.fault import Fault
from replication.simulation.faults import CHOICE_MAX, QUIET_MS, fault_bounds
from replication.simulation.options import FaultKind, NetworkOptions, Options
from replication.simulation.retention import RETENTION_KINDS

_SHORT_MS: Final = DurationMs(20_000)
_PRODUCE_MS_MAX: Final = DurationMs(5_000)
BROKER_MAX: Final = 5
_PLACES: Final = ("in sync", "out of sync", "eligible")


class EventKind(enum.Enum):
    """Name the events of a broker, as the controller sees them."""

    FENCE = "its session ends"
    UNFENCE = "it is back, its log whole"
    RESTART_UNCLEANLY = "it is back, the end of its log perhaps lost"
    MOVE_REPLICA = "its replica moves to another of its log directories"


@attrs.frozen
class Event:
    """Describe one event of one broker."""

    kind: EventKind
    broker: BrokerId


class PolicyFailure(AssertionError):  # noqa: N818 - a finding about a policy, not an error of the caller.
    """Report that an election policy elected a wrong broker; `ballot` is the smallest such election that was found."""

    def __init__(self, ballot: Ballot, election: Election, elected: Elected, what: str) -> None:
        self.ballot = ballot
        self.election = election
        self.elected = elected
        super().__init__(
            f"{what}\n  election {election.name}, elected {elected.leader} ({elected.choice.name})\n"
            f"  replicas {_listed(ballot.replicas)}, ISR {_listed(ballot.isr)}, ELR {_listed(ballot.elr)}, "
            f"leader {ballot.leader}, last leader {_listed(ballot.last_known)}\n"
            f"  alive {_listed([broker for broker in ballot.replicas if broker in ballot.acceptable])}"
        )


@st.composite
def partitions(draw: st.DrawFn, *, elr: bool = True, replica_count_max: int = 4) -> PartitionState:
    """Return a partition that a controller may hold; without `elr` its ISR is not empty and its ELR is."""
    # A list of whole replicas, so that shrinking can leave one out.
    one = st.tuples(st.integers(0, BROKER_MAX).map(BrokerId), st.sampled_from(_PLACES if elr else _PLACES[:2]))
    drawn = draw(st.lists(one, min_size=1, max_size=replica_count_max, unique_by=itemgetter(0)))
    replicas = tuple(broker for broker, _ in drawn)
    isr = tuple(broker for broker, place in drawn if place == "in sync")
    if not isr and not elr:
        isr = replicas[:1]
    eligible = tuple(sorted(broker for broker, place in drawn if place == "eligible"))
    leader = draw(st.sampled_from([NO_LEADER, *isr]))
    last_known = draw(st.sampled_from([(), *((broker,) for broker in replicas)])) if elr and not isr else ()
    return PartitionState(
        replicas=replicas,
        isr=isr,
        leader=leader,
        elr=eligible,
        last_known=last_known,
    )


@st.composite
def ballots(draw: st.DrawFn) -> Ballot:
    """Return the input of an election: a partition, and the live brokers."""
    state = draw(partitions())
    alive = draw(st.frozensets(st.sampled_from(state.replicas)))
    return Ballot(
        replicas=state.replicas,
        isr=state.isr,
        elr=state.elr,
        leader=state.leader,
        last_known=state.last_known,
        acceptable=alive,
    )


def events(brokers: Sequence[BrokerId], *, count_max: int = 12) -> st.SearchStrategy[list[Event]]:
    """Return a sequence of events of these brokers; `applied` leaves out those that make no sense in their place."""
    one = st.builds(Event, st.sampled_from(EventKind), st.sampled_from(list(brokers)))
    return st.lists(one, max_size=count_max)


def applied(
    state: PartitionState, sequence: Sequence[Event], settings: PartitionSettings, policy: ElectionPolicy = elect
) -> list[PartitionState]:
    """Return the states of a partition after each event, `state` first; at first all its brokers are live."""
    active = frozenset(state.replicas)
    states = [state]
    for event in sequence:
        is_of_active = event.kind in (EventKind.FENCE, EventKind.MOVE_REPLICA)
        if is_of_active is not (event.broker in active):
            continue
        following: PartitionState | None
        if event.kind is EventKind.MOVE_REPLICA:
            following = directories_assigned(states[-1], settings)
        elif event.kind is EventKind.FENCE:
            following = fenced(states[-1], event.broker, active, settings, policy)
            active = active - {event.broker}
        else:
            base = states[-1]
            if event.kind is EventKind.RESTART_UNCLEANLY:
                base = restarted_uncleanly(base, event.broker, active, settings, policy) or base
            following = unfenced(base, event.broker, active, settings, policy) or base
            active = active | {event.broker}
        states.append(following or states[-1])
    return states


@st.composite
def networks(draw: st.DrawFn) -> NetworkOptions:
    """Return the options of a network: at best as in one rack, at worst with delays, losses and duplicates."""
    return NetworkOptions(
        delay_ms_max=draw(st.sampled_from((2, 10, 50))),
        loss=draw(st.integers(0, 30)),
        duplicates=draw(st.integers(0, 20)),
        stragglers=draw(st.integers(0, 20)),
        is_ordered=draw(st.booleans()),
    )


@st.composite
def clusters(
    draw: st.DrawFn, *, duration_ms: DurationMs = _SHORT_MS, rules: Rules = CURRENT, broker_count_max: int = BROKER_MAX
) -> Options:
    """Return the options of a simulated cluster without faults; `fault_plans` draws those."""
    brokers = draw(st.integers(1, broker_count_max))
    factor = draw(st.integers(1, min(brokers, 3)))
    settings = PartitionSettings(rules=rules, min_isr=draw(st.integers(1, factor)))
    return Options(
        seed=draw(st.integers(0, 2**32)),
        brokers=brokers,
        racks=draw(st.integers(1, brokers)),
        partitions=draw(st.integers(1, 3)),
        replication_factor=factor,
        producers=draw(st.integers(1, 3)),
        acks=draw(st.sampled_from(((-1,), (-1, 1), (-1, 1, 0)))),
        is_idempotent=draw(st.booleans()),
        produce_ms=DurationMs(draw(st.sampled_from((200, 500, 1_000)))),
        duration_ms=duration_ms,
        network=draw(networks()),
        role_settings=RoleSettings(settings=settings, produce_ms_max=_PRODUCE_MS_MAX),
        name="drawn",
    )


def fault_plans(
    options: Options, *, kinds: Sequence[FaultKind] | None = None, count_max: int = 8
) -> st.SearchStrategy[tuple[Fault, ...]]:
    """Return a plan of faults for a cluster, by time; each is within what its kind can be drawn with.

    Without `kinds` the plan has any kind that applies to the cluster; faults of retention need logs with retention.
    """
    if kinds is None:
        kinds = [kind for kind in FaultKind if options.retention is not None or kind not in RETENTION_KINDS]
    one = _faults(options, tuple(kinds))
    return st.lists(one, max_size=count_max).map(lambda drawn: tuple(sorted(drawn, key=_by_time)))


@st.composite
def _faults(draw: st.DrawFn, options: Options, kinds: tuple[FaultKind, ...]) -> Fault:
    # Kind and target are one draw, as Hypothesis drops what at most five draws made from a list as it shrinks.
    targets = [(kind, target) for kind in kinds for target in range(fault_bounds(kind, options).target_count)]
    kind, target = draw(st.sampled_from(targets))
    bounds = fault_bounds(kind, options)
    return Fault(
        start_ms=TimeMs(draw(st.integers(QUIET_MS, options.duration_ms - 1))),
        kind=kind,
        target=target,
        duration_ms=DurationMs(draw(st.integers(bounds.duration_ms_min, bounds.duration_ms_max))),
        choice=draw(st.integers(-CHOICE_MAX, CHOICE_MAX - 1)),
    )


def _by_time(fault: Fault) -> tuple[int, str]:
    return fault.start_ms, str(fault)


def check_policy(policy: ElectionPolicy, *, example_count: int = 300) -> None:
    """Hold elections with `policy` on many small ballots; raise `PolicyFailure` with the smallest wrong election.

    Safety: the elected broker must be a replica and live, and in the ISR, or in the ELR while the ISR is empty; a live
    one that is neither may be elected if no such replica is alive and the election is UNCLEAN or the broker led last.
    Availability: somebody must be elected if a replica is alive that may be. Raises `PolicyError` for an answer that is
    no election.
    """

    @searching(example_count)
    @given(ballots(), st.sampled_from(Election))
    def property_holds(ballot: Ballot, election: Election) -> None:
        _check_ballot(policy, ballot, election)

    try:
        property_holds()
    except PolicyError as error:
        raise PolicyError(str(error)) from None
    except PolicyFailure as failure:
        # Raised anew: Hypothesis's own notes repeat the case in its words.
        raise PolicyFailure(failure.ballot, failure.election, failure.elected, str(failure).splitlines()[0]) from None


def _check_ballot(policy: ElectionPolicy, ballot: Ballot, election: Election) -> None:
    elected = policy(ballot, election, CURRENT)
    if not isinstance(elected, Elected) or elected.leader == NO_LEADER:
        check_elected(elected, ballot)
        if elect(ballot, election, CURRENT).leader != NO_LEADER:
            raise PolicyFailure(ballot, election, elected, "nobody is elected, and a replica is alive that may lead")
        return
    if elected.leader not in ballot.replicas:
        raise PolicyFailure(ballot, election, elected, "the leader is no replica")
    if elected.leader not in ballot.acceptable:
        raise PolicyFailure(ballot, election, elected, "the leader is not alive")
    complete = [broker for broker in ballot.replicas if ballot.is_valid(broker)]
    if elected.leader in complete:
        return
    if complete:
        raise PolicyFailure(ballot, election, elected, "the leader may lack records, and a complete one is alive")
    is_last_known = not ballot.isr and not ballot.elr and ballot.last_known == (elected.leader,)
    if election is not Election.UNCLEAN and not is_last_known:
        raise PolicyFailure(ballot, election, elected, "the leader may lack records, and the election is clean")


def _listed(brokers: Sequence[BrokerId]) -> str:
    return ",".join(map(str, brokers)) or "none"
