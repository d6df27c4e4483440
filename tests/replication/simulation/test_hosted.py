"""A broker hosts a further role: what it writes is replicated, answered when committed, and survives its broker."""

from __future__ import annotations

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.ids import BrokerId, LeaderEpoch, Offset
from broker.units import DurationMs, TimeMs
from log.batches.build import BatchSpec, build_batch
from log.record import Record
from replication.checkers import Finding
from replication.checkers.view import leader_role
from replication.roles.hosted import Host
from replication.roles.messages import Address, ClientDue, HostedMessage, Message, NodeId, ProduceResponse
from replication.roles.outbox import Outbox
from replication.simulation import Fault, FaultKind, Simulation, quiet, run
from replication.simulation.cluster import Cluster

pytestmark = pytest.mark.deep

OPTIONS = attrs.evolve(quiet(1, DurationMs(30_000)), internal_partitions=1, producers=0, consumers=0)
INTERNAL = OPTIONS.partitions


@attrs.frozen
class Store(HostedMessage):
    """A client asks for a value to be kept."""

    value: int


@attrs.frozen
class Stored(HostedMessage):
    """The answer; NONE once it is committed."""

    value: int
    error: ErrorCode


class LogManager:
    """Keeps values in the internal partition; notes what it is told of leadership."""

    def __init__(self, host: Host, notes: list[tuple[BrokerId, str, int]]) -> None:
        self._host = host
        self._notes = notes
        self._waiting: dict[int, tuple[Store, Address]] = {}

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        if isinstance(message, Store):
            batch = build_batch(BatchSpec(), (Record(Offset(0), now_ms, None, message.value.to_bytes(8, "big")),))
            append = self._host.append(INTERNAL, batch, out)
            if append.error is not ErrorCode.NONE:
                out.send(sender, Stored(message.value, append.error))
            else:
                self._waiting[append.number] = (message, sender)
        elif isinstance(message, ProduceResponse):
            store, client = self._waiting.pop(message.number)
            out.send(client, Stored(store.value, message.error))

    def on_gained(self, partition: int, leader_epoch: LeaderEpoch, now_ms: TimeMs, out: Outbox) -> None:
        self._notes.append((self._host.broker, "gained", partition))
        assert self._host.led_log(partition) is not None

    def on_lost(self, partition: int, now_ms: TimeMs, out: Outbox) -> None:
        self._notes.append((self._host.broker, "lost", partition))
        assert self._host.led_log(partition) is None


class Asker:
    """Asks the broker that leads in the beginning once a second, and from `moves_at_ms` on the next one."""

    def __init__(self, moves_at_ms: int) -> None:
        self._moves_at_ms = moves_at_ms
        self.answers: list[Stored] = []
        self._number = 0

    def begin(self, out: Outbox) -> None:
        out.wake(DurationMs(3_000), ClientDue(0))

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        if isinstance(message, ClientDue):
            self._number += 1
            broker = INTERNAL if now_ms < self._moves_at_ms else (INTERNAL + 1) % OPTIONS.brokers
            out.send(Address(NodeId(broker)), Store(self._number))
            if now_ms < 25_000:
                out.wake(DurationMs(1_000), ClientDue(0))
        elif isinstance(message, Stored):
            self.answers.append(message)


class Keeping:
    """The hosted role and its client in a run."""

    def __init__(self, moves_at_ms: int = 15_000) -> None:
        self.notes: list[tuple[BrokerId, str, int]] = []
        self.asker = Asker(moves_at_ms)
        self.missing_text: str | None = None

    def join(self, cluster: Cluster) -> None:
        cluster.host(lambda host: LogManager(host, self.notes))
        cluster.join(lambda node: self.asker)

    def missing(self, cluster: Cluster) -> str | None:
        return self.missing_text

    def findings(self, cluster: Cluster) -> tuple[Finding, ...]:
        return ()


def test_what_a_guest_writes_is_committed_before_it_is_told_so() -> None:
    keeping = Keeping()
    simulation = Simulation(OPTIONS, extension=keeping)
    simulation.run_until(10_000)
    values = [stored.value for stored in keeping.asker.answers if stored.error is ErrorCode.NONE]
    assert len(values) >= 5
    committed = simulation.checker.references[INTERNAL].committed
    assert [entry.value for entry in committed[: len(values)]] == values
    assert simulation.finish().is_clean


def test_what_a_guest_writes_is_dated_by_the_clock_of_its_broker() -> None:
    """A second clock beside it could call a silent follower caught up for as long as the two differ."""
    keeping, behind_ms = Keeping(), -60_000
    simulation = Simulation(OPTIONS, extension=keeping)
    broker = BrokerId(INTERNAL % OPTIONS.brokers)
    simulation.cluster.nodes[broker].clock_ahead_ms = behind_ms
    simulation.run_until(10_000)
    assert [stored for stored in keeping.asker.answers if stored.error is ErrorCode.NONE]
    role = leader_role(simulation.cluster.nodes[broker], INTERNAL)
    assert role is not None
    latest_ms = simulation.cluster.nodes[broker].now_ms
    for follower in role.state.followers:
        assert latest_ms - 2_000 < follower.fetched_at_ms <= latest_ms
        assert latest_ms - 2_000 < follower.caught_up_at_ms <= latest_ms


def test_a_guest_is_told_which_partitions_its_broker_leads() -> None:
    keeping = Keeping()
    plan = (Fault(TimeMs(8_000), FaultKind.STOP, INTERNAL % OPTIONS.brokers, DurationMs(5_000)),)
    outcome = run(OPTIONS, plan, extension=keeping)
    assert outcome.is_clean
    told = [(broker, what) for broker, what, partition in keeping.notes if partition == INTERNAL]
    assert told[0] == (BrokerId(2), "gained")
    # A stop hands the partition over before the process ends.
    assert (BrokerId(2), "lost") in told
    assert (BrokerId(0), "gained") in told
    late = [stored.error for stored in keeping.asker.answers if stored.value > 13]
    assert late
    assert set(late) == {ErrorCode.NONE}


def test_a_guest_without_enough_replicas_is_refused() -> None:
    keeping = Keeping(moves_at_ms=40_000)
    plan = tuple(Fault(TimeMs(4_500), FaultKind.KILL, broker, DurationMs(20_000)) for broker in (0, 1))
    outcome = run(OPTIONS, plan, extension=keeping)
    assert outcome.is_clean
    errors = {stored.error for stored in keeping.asker.answers}
    assert errors == {ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS}


def test_a_run_whose_extension_is_not_whole_says_so() -> None:
    keeping = Keeping()
    keeping.missing_text = "group 7 is not stable (L8)"
    options = attrs.evolve(OPTIONS, duration_ms=DurationMs(4_000), heal_ms_max=DurationMs(2_000))
    findings = run(options, (), extension=keeping).findings
    assert [(finding.code, finding.what) for finding in findings] == [("L", "group 7 is not stable (L8)")]
