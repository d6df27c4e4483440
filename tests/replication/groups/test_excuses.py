"""What two of Kafka's own holes excuse: seeds that fall into them are clean, and broken without the excuse."""

from __future__ import annotations

import attrs
import pytest

from broker.units import DurationMs, TimeMs
from replication.groups import GroupsExtension, shard, with_groups
from replication.groups.client.consumer_client import ConsumerClient
from replication.simulation import FaultKind, Options, Simulation, varied
from tests.replication.groups.builders import count_held_fetches

LASTS = DurationMs(600_000)


def findings(options: Options, until_ms: int) -> list[str]:
    groups = GroupsExtension.drawn(options, 2)
    simulation = Simulation(options, extension=groups)
    simulation.run_until(TimeMs(until_ms))
    found = [f"{finding.code} {finding.what}" for finding in groups.checker.findings]
    return found + [f"G7 {each.shown.key[0]}: {each.why}" for each in groups.history.impossible()]


@pytest.mark.deep
def test_g2_a_member_takes_what_it_has_just_reported_not_to_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Member 0 waits for its commit, its heartbeat fails, and the next one says everything: it owns topic-b-0 only.

    Coordinators answer heartbeats at once here. Since they wait for what is pending the three seeds that fell into this
    hole do not any more; a heartbeat that fails on its way may still lead there. Every broker is a replica, and the run
    was found when a move had to add one: none is ordered.
    """
    count_held_fetches(monkeypatch)
    monkeypatch.setattr(shard, "shows_state", lambda *_: False)
    options = with_groups(varied(950_027, LASTS))
    moves = (FaultKind.REASSIGN, FaultKind.CANCEL_REASSIGNMENT)
    options = attrs.evolve(options, fault_ms=tuple(each for each in options.fault_ms if each[0] not in moves))
    assert findings(options, 158_000) == []
    monkeypatch.setattr(ConsumerClient, "coming", frozenset())
    assert findings(options, 158_000) == ["G2 group-0: group-0-member-0 and group-0-member-1 both own topic-a-0"]


@pytest.mark.deep
def test_g7_a_deposed_leader_acknowledges_what_is_lost_already(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another broker is elected uncleanly at 40 s; the former leader, alone in its ISR, takes commits until 63 s."""
    options = with_groups(varied(950_960, LASTS))
    assert findings(options, 129_000) == []
    monkeypatch.setattr(GroupsExtension, "_note_deposed", lambda _self, _cluster: None)
    why = "a later commit, of 34 by group-1-member-0, was acknowledged before"
    assert findings(options, 129_000) == [f"G7 group-1: {why}"]
