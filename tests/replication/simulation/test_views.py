"""A simulation can be asked at any moment what a partition looks like, and what has been lost."""

from __future__ import annotations

import attrs

from broker.ids import BrokerId
from broker.units import DurationMs, TimeMs
from replication.rules.out_of_sync import Why
from replication.rules.settings import PartitionSettings
from replication.simulation import Fault, FaultKind, PartitionView, Simulation, harsh, quiet
from replication.simulation.options import with_partition_settings
from replication.simulation.recording import ShrinkCause

OPTIONS = attrs.evolve(quiet(1, DurationMs(120_000)), partitions=1)


def at(simulation: Simulation, now_ms: int) -> PartitionView:
    simulation.run_until(now_ms)
    view = simulation.partition(0)
    assert view is not None
    return view


def test_before_it_is_made_there_is_no_partition() -> None:
    simulation = Simulation(OPTIONS, ())
    simulation.run_until(500)
    assert simulation.partition(0) is None


def test_a_whole_partition_has_no_osr_and_its_logs_end_alike() -> None:
    view = at(Simulation(OPTIONS, ()), 20_000)
    assert (view.leader, view.isr, view.osr, view.elr) == (BrokerId(0), view.replicas, (), ())
    assert len(view.logs) == 3
    assert max(log.end_offset for log in view.logs) - min(log.end_offset for log in view.logs) <= 2
    assert view.high_watermark is not None
    assert all(log.start_offset == 0 <= log.high_watermark <= log.end_offset for log in view.logs)


def test_a_replica_cut_off_leaves_by_its_lag_and_says_how_far_it_is_behind() -> None:
    simulation = Simulation(OPTIONS, (Fault(TimeMs(5_000), FaultKind.CUT_PEERS, 2, DurationMs(80_000)),))
    view = at(simulation, 60_000)
    (out,) = view.osr
    assert (out.now.broker, out.now.why) == (BrokerId(2), Why.STUCK)
    assert out.left is not None
    assert out.left.by is ShrinkCause.LAG
    assert 35_000 < out.left.at_ms < 51_000  # Between the lag and one and a half times the lag.
    ends = {log.broker: log.end_offset for log in view.logs}
    assert out.now.lag_records == ends[BrokerId(0)] - ends[BrokerId(2)] > 50
    assert out.now.lag_ms is not None
    assert out.now.lag_ms > 50_000
    assert "2 (STUCK, " in str(view)


def test_who_stops_restarts_or_is_fenced_leaves_for_that() -> None:
    plan = (
        Fault(TimeMs(5_000), FaultKind.STOP, 1, DurationMs(20_000)),
        Fault(TimeMs(40_000), FaultKind.KILL, 2, DurationMs(20_000)),
        Fault(TimeMs(80_000), FaultKind.KILL, 1, DurationMs(10)),
    )
    simulation = Simulation(OPTIONS, plan)
    simulation.run_until(100_000)
    left = [(leaving.broker, leaving.by) for leaving in simulation.recording.isr_shrinks]
    assert left == [
        (BrokerId(1), ShrinkCause.SHUTDOWN),
        (BrokerId(2), ShrinkCause.SESSION),
        (BrokerId(1), ShrinkCause.SESSION),
    ]


def test_without_a_leader_only_the_controller_is_asked() -> None:
    plan = tuple(Fault(TimeMs(at_ms), FaultKind.KILL, b, DurationMs(60_000)) for b, at_ms in enumerate((5_000,) * 3))
    view = at(Simulation(OPTIONS, plan), 30_000)
    assert (view.leader, view.high_watermark) == (None, None)
    assert {out.now.why for out in view.osr} == {Why.FENCED}
    assert all(not log.is_up for log in view.logs)
    assert "leader none" in str(view)


def test_what_an_unclean_election_takes_is_told_with_the_event() -> None:
    options = attrs.evolve(OPTIONS, is_strict=False)
    options = with_partition_settings(options, PartitionSettings(min_isr=1, unclean_election=True))
    plan = (
        Fault(TimeMs(5_000), FaultKind.KILL, 2, DurationMs(40_000)),
        Fault(TimeMs(30_000), FaultKind.KILL, 0, DurationMs(60_000)),
        Fault(TimeMs(30_000), FaultKind.KILL, 1, DurationMs(60_000)),
    )
    simulation = Simulation(options, plan)
    simulation.run_until(29_000)
    assert simulation.durability().lost == ()
    outcome = simulation.finish()
    lost = outcome.durability.lost
    assert len(lost) > 20
    assert all(record.cause.startswith("unclean election of broker 2 at 45") for record in lost)
    assert all("cut its log to " in record.event for record in lost)


def test_ar_is_isr_and_osr_at_any_moment() -> None:
    simulation = Simulation(harsh(3, DurationMs(60_000)))
    for now_ms in range(2_000, 60_000, 500):
        view = at(simulation, now_ms)
        assert {*view.isr, *(out.now.broker for out in view.osr)} == set(view.replicas)
        assert len(view.isr) + len(view.osr) == len(view.replicas)
