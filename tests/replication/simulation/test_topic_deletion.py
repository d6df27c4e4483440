"""Topics that are deleted while they are written, and created again: orders take effect, and nothing old is seen."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from broker.units import DurationMs, TimeMs
from replication.roles.controller import ControllerRole
from replication.roles.messages import Message, NodeId, ProduceResponse
from replication.roles.outbox import Outbox
from replication.rules.produce import Fate
from replication.simulation import Fault, FaultKind, Options, Simulation, quiet, run, varied
from replication.simulation.cluster import Cluster
from replication.simulation.node import Node

pytestmark = pytest.mark.deep

OPTIONS: Final[Options] = attrs.evolve(quiet(1, DurationMs(30_000)), produce_ms=DurationMs(50), consumers=2)
DELETED: Final = (Fault(TimeMs(5_000), FaultKind.DELETE_TOPIC, 0, DurationMs(3_000)),)
NEW: Final = OPTIONS.partition_count
"""The number of the topic that is created again."""


def played(plan: tuple[Fault, ...] = DELETED, until_ms: int = 0) -> tuple[Simulation, Counter[ErrorCode]]:
    simulation = Simulation(OPTIONS, plan)
    errors: Counter[ErrorCode] = Counter()

    def note(_cluster: Cluster, _node: NodeId, _message: Message, out: Outbox) -> None:
        errors.update(each.error for _, each in out.sent if isinstance(each, ProduceResponse))

    simulation.cluster.watches.append(note)
    simulation.run_until(until_ms or OPTIONS.duration_ms)
    return simulation, errors


def test_a_deleted_topic_is_gone_everywhere_and_writes_to_it_are_refused() -> None:
    simulation, errors = played(until_ms=7_500)
    cluster = simulation.cluster
    assert set(cluster.controller.image.partitions) == {1}
    assert [sorted(node.logs) for node in cluster.nodes.values()] == [[1], [1], [1]]
    assert errors[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] > 0
    before = Counter(write.partition for write in cluster.history.writes)
    assert before[0] > 0
    assert before[NEW] == 0


def test_a_topic_created_again_has_its_name_and_none_of_its_records() -> None:
    simulation, _ = played()
    history, image = simulation.cluster.history, simulation.cluster.controller.image
    assert history.successors == {0: NEW}
    assert image.topics[NEW] == "topic-0"
    acked = {write.value for write in history.writes if write.partition == NEW and write.fate is Fate.ACKED}
    seen = {record.value for record in history.consumed_records if record.partition == NEW}
    assert len(acked) > 50
    assert seen <= {write.value for write in history.writes if write.partition == NEW}
    assert len(seen) > 50
    outcome = simulation.finish()
    assert outcome.findings == ()
    assert outcome.durability.lost == ()
    # Each producer has written once more to the new topic, and to none that is deleted.
    last = {write.partition for write in history.writes if write.sent_ms > OPTIONS.duration_ms}
    assert last == {1, NEW}


def test_a_topic_may_be_deleted_again_under_the_number_that_it_has_by_then() -> None:
    again = attrs.evolve(DELETED[0], start_ms=TimeMs(15_000))
    simulation, _ = played((*DELETED, again))
    assert simulation.cluster.history.number_of(0) == NEW + 1
    assert simulation.cluster.deleted == {0, NEW}
    assert simulation.finish().findings == ()


def test_orders_are_given_again_while_nobody_is_controller_and_no_more_after_the_faults() -> None:
    away = Fault(TimeMs(4_900), FaultKind.CONTROLLER_AWAY, 0, DurationMs(6_000))
    simulation, _ = played((away, *DELETED))
    assert simulation.cluster.history.successors == {0: NEW}
    assert simulation.finish().findings == ()
    late = attrs.evolve(DELETED[0], start_ms=TimeMs(29_500))
    simulation, _ = played((late,))
    assert simulation.finish().findings == ()
    assert set(simulation.cluster.controller.image.partitions) == {1}
    assert simulation.cluster.history.successors == {}


def test_a_topic_that_is_being_deleted_is_not_deleted_twice() -> None:
    away = Fault(TimeMs(4_900), FaultKind.CONTROLLER_AWAY, 0, DurationMs(6_000))
    simulation, _ = played((away, *DELETED, attrs.evolve(DELETED[0], start_ms=TimeMs(6_000))))
    assert set(simulation.cluster.controller.image.partitions) == {1, NEW}
    assert simulation.finish().findings == ()


def test_an_order_that_nobody_took_before_the_faults_ended_is_not_given_again() -> None:
    away = Fault(TimeMs(28_000), FaultKind.CONTROLLER_AWAY, 0, DurationMs(6_000))
    simulation, _ = played((away, attrs.evolve(DELETED[0], start_ms=TimeMs(28_500))))
    assert simulation.finish().findings == ()
    assert set(simulation.cluster.controller.image.partitions) == {0, 1}


def test_a_broker_that_is_down_meanwhile_deletes_what_it_has_when_it_is_back() -> None:
    down = Fault(TimeMs(4_000), FaultKind.KILL, 1, DurationMs(20_000))
    simulation, _ = played((down, *DELETED))
    assert simulation.finish().findings == ()
    assert sorted(simulation.cluster.nodes[BrokerId(1)].logs) == [1, NEW]


def logs_are_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Node, "_drop_log", lambda _self, partition: _self.logs.pop(partition, None))


def logs_are_kept_and_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Node, "_drop_log", lambda _self, _partition: None)


def deletions_are_ignored(patch: pytest.MonkeyPatch) -> None:
    original = ControllerRole._write

    def write(self: ControllerRole, record: Any) -> None:
        if type(record).__name__ != "PartitionRemoved":
            original(self, record)

    patch.setattr(ControllerRole, "_write", write)


@pytest.mark.parametrize("break_it", [logs_are_kept, logs_are_kept_and_open, deletions_are_ignored])
def test_a_deletion_that_does_not_take_effect_is_found(break_it: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    break_it(monkeypatch)
    assert run(OPTIONS, DELETED).findings


def test_the_varied_shape_draws_deletions_in_half_of_its_runs() -> None:
    kinds = [dict(varied(seed, DurationMs(60_000)).fault_ms) for seed in range(200)]
    assert 70 < sum(FaultKind.DELETE_TOPIC in each for each in kinds) < 130
