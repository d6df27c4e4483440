"""G7 as coordinators read their partition: what a dropped one read, and what the present one read uncommitted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import attrs
import pytest

from broker.ids import Offset
from broker.units import DurationMs, TimeMs
from replication.groups import GroupsExtension, with_groups
from replication.groups.offsets_log import Journal, OffsetsRecord
from replication.simulation import FaultKind, Simulation, draw_plan, varied
from tests.replication.groups.builders import count_held_fetches

pytestmark = pytest.mark.deep

READ_MS = 529_672
"""Broker 4 has read partition 3 and a commit of 367 above the high watermark, at which it arrives at 530392 ms."""
FORMER_READ_MS = 530_427
"""A timer of the coordinator before it, which was dropped as it read, ends."""

MOVES: Final = {133_197: 358, 341_419: 398}
"""The details that draw the targets (2, 1) and (2, 5), as the seed did when a move replaced one replica."""


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> tuple[GroupsExtension, Simulation]:
    """Return a run in which broker 4 leads a partition twice within a second, shortly before it does."""
    count_held_fetches(monkeypatch)
    options = with_groups(varied(990_232, DurationMs(600_000)))
    groups = GroupsExtension.drawn(options, 2)
    plan = tuple(
        attrs.evolve(each, choice=MOVES.get(each.start_ms, each.choice)) if each.kind is FaultKind.REASSIGN else each
        for each in draw_plan(options)
    )
    simulation = Simulation(options, plan, extension=groups)
    simulation.run_until(TimeMs(READ_MS - 500))
    return groups, simulation


def test_g7_the_timer_of_a_coordinator_that_was_dropped_as_it_read(drawn: tuple[GroupsExtension, Simulation]) -> None:
    """No request has come since the high watermark passed the commit, so that its coordinator does not show it yet."""
    groups, simulation = drawn
    simulation.run_until(TimeMs(READ_MS))
    count = groups.counts.load_count
    simulation.run_until(TimeMs(FORMER_READ_MS))
    assert (groups.checker.findings, groups.counts.load_count) == ([], count)


def test_g7_a_coordinator_that_forgets_what_it_read_above_the_high_watermark(
    drawn: tuple[GroupsExtension, Simulation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen at the first request after the high watermark has passed the commit, long before another one replaces it."""
    groups, simulation = drawn
    real = Journal.read

    def read(self: Journal, records: Iterable[tuple[Offset, OffsetsRecord]], high_watermark: Offset) -> Any:
        found = real(self, records, high_watermark)
        for group in found.values():
            group.uncommitted.clear()
        return found

    monkeypatch.setattr(Journal, "read", read)
    simulation.run_until(TimeMs(FORMER_READ_MS + 2_000))
    (finding,) = groups.checker.findings
    assert (finding.code, finding.at_ms > FORMER_READ_MS) == ("G7", True)
