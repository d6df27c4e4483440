"""Let consumers coordinate themselves through ZooKeeper, note every request, and compare the reports with the notes.

What it decides: the group, its settings, and who joins or dies when, from a seed. Some changes come before the one
before has settled, so that one interrupts what another has begun.

Constraints: what a report must say is counted from the requests that reach ZooKeeper's tree, and from which consumers
are dead; nothing of the herd but its clock is looked at while it runs.

Source: ours; the rules are those of kafka.consumer.ZookeeperConsumerConnector 0.8.2 (syncedRebalance, rebalance).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import attrs

from broker.group.zookeeper import Herd, HerdOptions, HerdReport
from broker.group.zookeeper.herd import IDS, OWNERS
from broker.units import DurationMs
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.herd_notes import HerdNotes, by_ranges

HERDS_A_RUN: Final = 40
CHANGE_COUNT: Final = 4
_STREAM: Final = 17


def herds_noticed(seed: int) -> str:
    """Return what consumers that ZooKeeper alone coordinates show to be broken, "" if nothing."""
    draws = Draws(seed, _STREAM)
    return next((told for told in (_Life(draws).run() for _ in range(HERDS_A_RUN)) if told), "")


class _Life:
    """Run one group through its changes."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._options = HerdOptions(
            consumer_count=draws.number(1, 8),
            partition_count=draws.number(1, 20),
            retry_count_max=draws.one((1, 2, 4, 100)),
            backoff_ms=DurationMs(draws.one((0, 300, 2_000))),
            notice_ms=DurationMs(draws.one((50, 500))),
            arrival_ms=DurationMs(draws.one((0, 1, 100))),
        )
        self._herd = Herd(self._options, draws.entropy)
        for path in (IDS, OWNERS):
            assert not self._herd.nodes.children(path), path
        self._notes = HerdNotes(lambda: self._herd.now_ms, self._options.partition_count)
        self._herd.nodes = self._notes
        self._alive = {f"c{number:04d}" for number in range(self._options.consumer_count)}
        self._failed: set[str] = set()
        self._former: set[str] = set()
        """Those that had failed as the last change came: they are told of it and not woken."""
        self._start_ms = 0
        self._join_count = self._options.consumer_count

    def run(self) -> str:
        """Run until the changes are over or a report is wrong."""
        told = self._reported(self._herd.start(), change_count=self._options.consumer_count)
        for step in range(CHANGE_COUNT):
            if told:
                return told
            self._begin()
            change_count = 1 + self._draws.is_one_in(3)
            for number in range(change_count):
                told = told or self._change(f"d{step}{number}")
            told = told or self._reported(self._herd.settle(), change_count)
        return told

    def _begin(self) -> None:
        self._start_ms, self._join_count, self._former = self._herd.now_ms, 0, set(self._failed)
        self._notes.begin()

    def _change(self, name: str) -> str:
        """Let a consumer join or the first die; return whether another than the first was called so."""
        if len(self._alive) < 2 or self._draws.is_one_in(2):
            self._alive.add(name)
            self._join_count += 1
            self._herd.join(name)
            return ""
        first = min(self._alive - self._failed or self._alive)
        gone = self._herd.first_active()
        self._notes.pass_by()
        self._herd.crash(first)
        self._alive.discard(first)
        self._notes.dead.add(first)
        return "" if gone == first else f"the first is {gone} and not {first}, of {self._alive} less {self._failed}"

    def _reported(self, report: HerdReport, change_count: int) -> str:
        """Return what a report says that the notes do not, or how a group that has settled is not at rest."""
        notes = self._notes
        notes.pass_by()
        self._failed |= notes.refused
        conflict_count = sum(map(len, notes.conflicts.values()))
        counted = attrs.evolve(
            report,
            conflict_count=conflict_count,
            disagreement_count=notes.disagreement_count,
            failed_consumer_count=len(self._failed),
            read_count=notes.read_count,
            write_count=notes.write_count,
            unowned_partition_ms=notes.unowned_ms,
            settled_ms=self._herd.now_ms - self._start_ms,
        )
        if notes.told or report != counted:
            return notes.told or f"reported is {report}, noted {counted}"
        told = notes.woken
        least = sum(name in self._alive - self._failed for name in told)
        most = sum(name in self._alive - self._former for name in told) if change_count == 1 else len(told)
        if not least <= report.woken_count <= most:
            return f"{report.woken_count} were woken, and told were {told}, of them failed {self._failed}"
        begun = self._join_count + report.woken_count
        look_count = sum(notes.look_count.values())
        if not max(begun, look_count) <= report.rebalance_count <= begun + conflict_count:
            return f"{report.rebalance_count} rebalances of {begun} and {conflict_count}, {look_count} reads"
        return (self._of_one_change(report) if change_count == 1 else "") or self._at_rest()

    def _of_one_change(self, report: HerdReport) -> str:
        """Return where one change of a group at rest is answered otherwise than by one rebalance of each consumer.

        A claim that is refused is tried again after `backoff_ms`, `retry_count_max` times in all.
        """
        most, notes = self._options.retry_count_max, self._notes
        for name, times in notes.conflicts.items():
            if (len(times) == most) != (name in self._failed) or len(times) > most:
                return f"{name} was refused {len(times)} times of {most}, and has failed: {name in self._failed}"
            if any(later - former <= self._options.backoff_ms for former, later in pairwise(times)):
                return f"{name} was refused at {times}, and pauses for {self._options.backoff_ms} ms"
        for name in sorted(self._alive - self._former):
            tried = 1 + len(notes.conflicts.get(name, ())) - (name in self._failed)
            if notes.look_count.get(name, 0) != tried:
                return f"{name} has read the group {notes.look_count.get(name, 0)} times, and not {tried}"
        if report.rebalance_count != sum(notes.look_count.values()):
            return f"{report.rebalance_count} rebalances, and {notes.look_count} read the group"
        return ""

    def _at_rest(self) -> str:
        """Return how owners differ from the ranges of those that have read the group last."""
        herd, notes = self._herd, self._notes
        if set(herd.nodes.children(IDS)) != self._alive:
            return f"registered are {herd.nodes.children(IDS)}, alive are {sorted(self._alive)}"
        if dict(herd.owners()) != notes.owner_of:
            return f"owners are {herd.owners()}, by the nodes {notes.owner_of}"
        stale = {name for name in self._alive - self._failed if notes.views[name] != tuple(sorted(self._alive))}
        if stale:
            return f"{stale} have not read the group of {sorted(self._alive)}"
        ranges = by_ranges(sorted(self._alive), self._options.partition_count)
        wanted = {each: name for each, name in enumerate(ranges) if name not in self._failed}
        return "" if notes.owner_of == wanted else f"owners are {notes.owner_of}, by ranges they were {wanted}"
