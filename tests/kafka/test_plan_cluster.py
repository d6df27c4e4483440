"""Plans carried out on six released brokers: a rack fix and a drain end where they should, and nobody loses min-ISR.

How: one scenario of a minute or two (`tests.kafka.plan_scenario`), then a test for each promise.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from broker.releases import NEWEST
from placement.balance.audit import rack_audit
from tests.kafka.jvm import KafkaUnavailableError
from tests.kafka.plan_scenario import Done, carry_out
from tests.placement.planning.cases import lists

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="session")
def carried_out(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Done]]:
    try:
        yield carry_out(tmp_path_factory.mktemp("plans"), NEWEST)
    except KafkaUnavailableError as missing:
        pytest.skip(f"released brokers cannot be run here: {missing}")


def test_each_plan_is_cut_into_batches_and_every_batch_is_verified_complete(carried_out: list[Done]) -> None:
    assert len(carried_out) == 2
    for done in carried_out:
        assert len(done.batches) > 1
        assert len(done.executed) == len(done.verified) == len(done.batches)
        for batch, executed, verified in zip(done.batches, done.executed, done.verified, strict=True):
            assert "Successfully started partition reassignment" in executed
            assert verified.count("is completed.") == batch.count
            assert "Clearing broker-level throttles" in verified


def test_the_cluster_ends_with_the_replicas_and_leaders_of_the_plan(carried_out: list[Done]) -> None:
    for done in carried_out:
        target = dict(enumerate(lists(done.before.partitions.replicas)))
        target |= dict(zip(done.plan.rows.tolist(), lists(done.plan.replicas), strict=True))
        assert dict(enumerate(lists(done.after.partitions.replicas))) == target
        assert done.after.partitions.leader is not None
        rows = done.plan.rows
        assert done.after.partitions.leader[rows].tolist() == done.plan.replicas[:, 0].tolist()


def test_racks_are_mended_first_and_then_the_drained_broker_holds_nothing(carried_out: list[Done]) -> None:
    racks, drain = carried_out
    broken = [rack_audit(view).fewer_racks for view in (racks.before, racks.after, drain.after)]
    assert [None if each is None else int(each.size) for each in broken] == [7, 0, 0]
    assert (racks.after.partitions.replicas == 6).any()
    assert not (drain.after.partitions.replicas == 6).any()


def test_no_look_on_the_way_saw_a_partition_under_min_isr(carried_out: list[Done]) -> None:
    for done in carried_out:
        assert len(done.looks) > 2 * len(done.batches)
        assert done.under_min_isr_looks() == 0


def test_a_partition_was_seen_on_its_way_with_the_replicas_that_we_say(carried_out: list[Done]) -> None:
    seen = 0
    for done in carried_out:
        target = dict(zip(done.plan.rows.tolist(), lists(done.plan.replicas), strict=True))
        now = lists(done.before.partitions.replicas)
        for look in done.looks:
            adding = look.partitions.adding
            if adding is None:
                continue
            for row in np.flatnonzero((adding >= 0).any(axis=1)).tolist():
                removing = sorted(set(now[row]) - set(target[row]))
                assert lists(look.partitions.replicas)[row] == target[row] + removing
                assert lists(adding)[row] == sorted(set(target[row]) - set(now[row]))
                seen += 1
    assert seen > 0
