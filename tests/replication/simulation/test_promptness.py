"""A cluster with one fault at most on a fast network: nobody waits for a timer without need.

Writes, reads, metadata and a rejoining replica take no longer than the network's delay and the session allow; held
fetches and held questions (Kafka's purgatories) are there for that.
"""

from __future__ import annotations

from typing import Final

import attrs
import pytest

from broker.entropy import SplitMix64, derive
from broker.ids import BrokerId
from broker.units import DurationMs, TimeMs
from replication.checkers.clients import Write
from replication.roles.messages import CONTROLLER, Message, NodeId
from replication.roles.outbox import Outbox
from replication.rules.produce import Fate
from replication.simulation import Fault, FaultKind, Simulation, quiet
from replication.simulation.cluster import Cluster

DURATION_MS: Final = DurationMs(50_000)
FAULT_MS: Final = TimeMs(20_000)
STEADY_MS: Final = 10_000
"""From when on every broker has joined."""
POLL_MS: Final = 1_000
"""How often a consumer asks."""
RETRY_MS: Final = 300
"""Longer than a client waits between two attempts."""
REJOIN_MS: Final = 3_000
GIVEN_UP_MS: Final = 10_000
"""Longer than a client waits for the answer of who is dead."""
_STREAM: Final = 19


class _News:
    """Watch how long each broker is without a record of the metadata that its controller has."""

    def __init__(self) -> None:
        self.slowest_ms = 0
        self._written_ms: list[int] = []
        """When each record was written."""

    def after(self, cluster: Cluster, node: NodeId, message: Message, out: Outbox) -> None:
        """Take what a node has just handled."""
        log = cluster.controller.log
        self._written_ms += [int(cluster.now_ms)] * (len(log) - len(self._written_ms))
        if node < CONTROLLER:
            role = cluster.nodes[BrokerId(node)].role
            if role is not None and 0 < role.image.offset < len(log):
                waited_ms = cluster.now_ms - self._written_ms[role.image.offset]
                self.slowest_ms = max(self.slowest_ms, waited_ms)


def _noticed(seed: int) -> str:
    """Return what was slow or broken in a run, "" if nothing."""
    entropy = SplitMix64(derive(seed, _STREAM))
    options = attrs.evolve(
        quiet(seed, DURATION_MS),
        brokers=3 + entropy.next_int_bound(2),
        partitions=1 + entropy.next_int_bound(3),
        acks=((-1,), (-1, 1))[entropy.next_int_bound(2)],
        is_idempotent=bool(entropy.next_int_bound(2)),
        produce_ms=DurationMs(200),
    )
    kind = (None, FaultKind.KILL, FaultKind.STOP, FaultKind.CONTROLLER_FAILOVER)[entropy.next_int_bound(4)]
    lasting_ms = DurationMs((3_000, 15_000)[entropy.next_int_bound(2)])
    plan = () if kind is None else (Fault(FAULT_MS, kind, entropy.next_int_bound(options.brokers), lasting_ms),)
    simulation, news = Simulation(options, plan), _News()
    simulation.cluster.watches.append(news.after)
    simulation.run_until(DURATION_MS)
    told = next((what for what, holds in _checks(simulation, kind, lasting_ms, news).items() if not holds), "")
    outcome = simulation.finish()
    return str(outcome.findings[0]) if outcome.is_broken else told


def _checks(simulation: Simulation, kind: FaultKind | None, lasting_ms: int, news: _News) -> dict[str, bool]:
    options = simulation.options
    delay_ms, session_ms = options.network.delay_ms_max, options.role_settings.session_ms
    writes = [each for each in simulation.cluster.history.writes if each.fate is not None and each.sent_ms > STEADY_MS]
    is_killed = kind is FaultKind.KILL
    over_ms = FAULT_MS + (max(lasting_ms, session_ms) + GIVEN_UP_MS if is_killed else lasting_ms + REJOIN_MS)
    calm = [each for each in writes if kind is None or each.answered_ms < FAULT_MS or each.sent_ms > over_ms]
    slowest = _slowest(calm)
    away_ms = 2 * (session_ms if is_killed else 2 * RETRY_MS)
    seen = {each.value: each.seen_ms for each in simulation.cluster.history.consumed_records}
    calm_values = [
        each
        for each in calm
        if each.answered_ms < DURATION_MS - 2 * POLL_MS and not FAULT_MS - 2 * POLL_MS < each.answered_ms < over_ms
    ]
    late = max((seen.get(each.value, DURATION_MS) - each.answered_ms for each in calm_values), default=0)
    states = [simulation.partition(each) for each in range(options.partitions)]
    return {
        f"a write took {slowest} ms": slowest <= 6 * delay_ms,
        f"a write failed in {kind}": all(
            each.fate is Fate.ACKED or (kind is not None and not options.is_idempotent) for each in writes
        ),
        f"in {kind} a write took {_slowest(writes)} ms": _slowest(writes) <= away_ms,
        f"news took {news.slowest_ms} ms": news.slowest_ms <= 3 * delay_ms or kind is not None,
        f"a consumer saw a record {late} ms late": late <= 2 * (POLL_MS + RETRY_MS),
        f"at the end not all are in sync: {states}": all(
            each is not None and len(each.isr) == len(each.replicas) for each in states
        ),
    }


def _slowest(writes: list[Write]) -> int:
    return max((each.answered_ms - each.sent_ms for each in writes), default=0)


@pytest.mark.parametrize("seed", range(3))
def test_nobody_waits_for_a_timer(seed: int) -> None:
    assert _noticed(seed) == ""
