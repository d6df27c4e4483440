"""What an operator does after the faults: restart a broker whose registration an earlier life has replaced."""

from __future__ import annotations

from typing import Final

import pytest

from broker.ids import BrokerEpoch, BrokerId
from broker.registration import Registration
from broker.units import DurationMs, TimeMs
from replication.roles.messages import CONTROLLER, Address, BrokerRegistration, Incarnation, Message, NodeId
from replication.roles.outbox import Outbox
from replication.simulation import Fault, FaultKind, Simulation, liveness, quiet, run
from replication.simulation.cluster import Cluster
from replication.simulation.liveness import is_replaced

DIES: Final = (Fault(TimeMs(5_000), FaultKind.KILL, 2, DurationMs(20_000)),)


def with_a_late_registration() -> Simulation:
    """Broker 2 registers anew, and the controller then takes what its first life had sent, before any heartbeat."""
    simulation = Simulation(quiet(1, DurationMs(30_000)), DIES)
    first: list[BrokerRegistration] = []

    def watch(cluster: Cluster, _node: NodeId, message: Message, _out: Outbox) -> None:
        if isinstance(message, BrokerRegistration) and message.broker == BrokerId(2):
            first.append(message)
            if message.incarnation != first[0].incarnation and len(first) == 2:
                cluster._push(cluster.now_ms, Address(CONTROLLER), Address(NodeId(2), Incarnation(1)), first[0])

    simulation.cluster.controller_watches.append(watch)
    return simulation


def test_a_broker_that_an_earlier_life_has_replaced_is_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = with_a_late_registration()
    assert simulation.finish().findings == ()
    line = "broker 2 is registered as its life 2/1, which has ended; an operator restarts it"
    assert [each for each in simulation.trace.lines if line in each]
    monkeypatch.setattr(liveness, "is_replaced", lambda *_: False)
    (finding,) = with_a_late_registration().finish().findings
    assert (finding.code, finding.what) == ("L", "broker 2 is not unfenced in its present life (L6)")


def test_a_broker_that_is_fenced_for_another_reason_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its heartbeats are lost to the last: nobody restarts it, and it is called broken."""
    monkeypatch.setattr("replication.roles.controller.ControllerRole._on_heartbeat", lambda *_: None)
    what = {finding.what for finding in run(quiet(1, DurationMs(10_000)), ()).findings}
    assert "broker 0 is not unfenced in its present life (L6)" in what


@pytest.mark.parametrize(
    ("epoch", "registered", "is_so"),
    [
        (559, ("3/10", 560), True),
        (559, ("3/11", 560), False),
        (559, ("3/12", 560), False),
        (559, ("3/10", 559), False),
        (None, ("3/10", 560), False),
    ],
)
def test_who_is_replaced(epoch: int | None, registered: tuple[str, int], is_so: bool) -> None:
    """The process is life 11 of broker 3."""
    name, at = registered
    registration = Registration(broker_id=BrokerId(3), incarnation_id=name, epoch=BrokerEpoch(at))
    assert is_replaced(Incarnation(11), None if epoch is None else BrokerEpoch(epoch), registration) is is_so
