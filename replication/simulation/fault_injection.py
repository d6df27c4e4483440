"""Apply the faults of a plan to a cluster and undo them.

The plan alone decides the time; the state found at that time decides the effect. Every fault that takes effect writes a
line to the trace.

Source: ours; TigerBeetle's VOPR limits losses for the same purpose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

import attrs

from broker.entropy import SplitMix64, derive
from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerId
from broker.units import DurationMs, TimeMs
from replication.roles.leader import LeaderRole
from replication.roles.messages import (
    CONTROLLER,
    AlterPartitionResponse,
    Incarnation,
    Message,
    NodeId,
)
from replication.roles.outbox import Outbox
from replication.rules.partition import PartitionState
from replication.simulation.cluster import DISK_STREAM, Cluster
from replication.simulation.disks import DISK_KINDS, DiskFaults, let_disks_fail, lose_blocks
from replication.simulation.fault import HELD_KINDS, OF_BROKERS, Aim, Fault, LeaderOf, aim_text
from replication.simulation.liveness import Missing
from replication.simulation.moves import order_move
from replication.simulation.network import ANYONE, Hold, one_way, two_ways
from replication.simulation.options import FaultKind
from replication.simulation.retention import RETENTION_KINDS, RetentionFaults
from replication.simulation.topic_deletion import TopicDeletion
from replication.simulation.wider_faults import WiderFaults

_SLOW_MS_MAX = 2_000
_LOOK_MS: Final = 100
_LAST_DOWN_MS: Final = 1_000
"""How long in ms the broker is down that stops after the faults."""
_ENDS: Final = (FaultKind.KILL, FaultKind.POWER_LOSS, FaultKind.WIPE, FaultKind.BLOCK_LOSS)
_TARGETED: Final = (FaultKind.CRASH_AT_COMMIT, FaultKind.CRASH_AT_ISR)
"""The faults that wait for an event."""


class FaultInjector:
    """Apply the faults of a plan to a cluster."""

    def __init__(self, cluster: Cluster, plan: tuple[Fault, ...]) -> None:
        self._cluster = cluster
        self._entropy = SplitMix64(derive(cluster.options.seed, DISK_STREAM))
        self._lossy: set[BrokerId] = set()
        self._armed: list[Fault] = []
        self._highs: dict[tuple[BrokerId, int], int] = {}
        self._retention = RetentionFaults(cluster)
        self._last_stop: BrokerId | None = None
        """The broker of `stop_one`, until it has stopped."""
        self.disks = DiskFaults(cluster)
        if any(fault.kind in DISK_KINDS for fault in plan):
            let_disks_fail(cluster)
            self.disks.watch()
        self._topics = TopicDeletion(cluster)
        self.wider = WiderFaults(cluster)
        """The faults of no single process."""
        self.is_over = False
        self.loss_count = 0
        """How often a broker lost records."""
        self.struck: Counter[tuple[FaultKind, str]] = Counter()
        """How often a fault of each kind struck a leader, a follower, a broker that is neither, or none."""
        self.on_strike: Callable[[Fault, bool], None] = _ignore
        """Called with each fault when its time has come, and with whether it took effect."""
        self.softened: set[Fault] = set()
        """The faults that only killed a broker, as a strict run allows no further one to lose records."""
        self._watches = False
        for fault in plan:
            self.inject(fault)

    def inject(self, fault: Fault) -> None:
        """Let a fault strike at its time; raise UsageError for one that is past, or of disks that cannot fail."""
        cluster, name = self._cluster, fault.kind.name
        if fault.start_ms < cluster.now_ms:
            raise UsageError(f"{name} at {fault.start_ms} ms is past: it is {cluster.now_ms} ms")
        if fault.kind in DISK_KINDS and not self.disks.can_strike():
            raise UsageError(f"{name} cannot be injected into this run; give a fault of {name} in its plan")
        cluster.at(fault.start_ms, partial(self._strike, fault))
        if fault.kind in _TARGETED and not self._watches:
            self._watches = True
            cluster.watches.append(self._after_event)

    def heal(self) -> None:
        """End all faults: start brokers that are down, heal the network, resume paused brokers."""
        cluster = self._cluster
        self.is_over = True
        self._armed.clear()
        self._retention.armed.clear()
        cluster.network.heal_all()
        self.disks.heal()
        self._topics.heal()
        self.wider.heal()
        cluster.trace.line(cluster.now_ms, "all faults are over")
        for broker, node in sorted(cluster.nodes.items()):
            cluster.resume(broker)
            if node.role is None:
                self._start(broker)

    def stop_one(self) -> None:
        """Tell one broker of a whole cluster to stop, and start it again; do nothing in a run without faults drawn."""
        options = self._cluster.options
        if options.fault_ms:
            self._last_stop = options.ids[options.seed % options.brokers]
            self._stop_last()

    def missing(self) -> Missing | None:
        """Return the controlled shutdown of `stop_one` that has not ended yet; None if it has."""
        if self._last_stop is None:
            return None
        return Missing("L13", f"broker {self._last_stop} is to stop and has not ended a controlled shutdown")

    def _stop_last(self) -> None:
        """Tell a broker to stop as soon as it runs, and start it again when it has stopped."""
        broker, cluster = self._last_stop, self._cluster
        if broker is not None and not self._stop(broker, DurationMs(_LAST_DOWN_MS)):
            cluster.at(cluster.now_ms + _LOOK_MS, self._stop_last)

    def _strike(self, fault: Fault) -> None:
        if self.is_over:
            return
        trace = self._cluster.trace
        found = self._aimed(fault)
        before = trace.line_count
        if found is not None:
            self._apply(found)
        if fault.kind not in _TARGETED:
            self.on_strike(fault, trace.line_count > before)

    def _aimed(self, fault: Fault) -> Fault | None:
        """Return a fault with its aim replaced by the broker found now; None if there is no such broker."""
        if fault.aim is None:
            return fault
        broker = self._aimed_at(fault.aim)
        if broker == NO_LEADER:
            self._trace_line(f"{fault.kind.name} strikes nobody: nobody is {aim_text(fault.aim)}")
            return None
        return attrs.evolve(fault, target=broker, aim=None)

    def _apply(self, fault: Fault) -> None:
        kind, cluster = fault.kind, self._cluster
        self.struck[kind, self._struck_role(fault)] += 1
        if kind in _ENDS:
            if self._end(BrokerId(fault.target), kind, fault.duration_ms) is not kind:
                self.softened.add(fault)
        elif kind is FaultKind.RACK_OUTAGE:
            self._trace_line(f"rack {fault.target} loses power")
            for broker, node in sorted(cluster.nodes.items()):
                if node.rack == fault.target:
                    self._end(broker, FaultKind.POWER_LOSS, fault.duration_ms)
        elif kind is FaultKind.STOP:
            self._stop(BrokerId(fault.target), fault.duration_ms)
        elif kind is FaultKind.PAUSE:
            self._pause(BrokerId(fault.target), fault.duration_ms)
        elif kind is FaultKind.CLOCK_JUMP:
            self._trace_line(f"the clock of broker {fault.target} jumps by {fault.choice} ms")
            cluster.nodes[BrokerId(fault.target)].clock_ahead_ms += fault.choice
        elif kind is FaultKind.CONTROLLER_FAILOVER:
            if not cluster.is_without_controller:
                self._trace_line("another controller takes over")
                cluster.fail_over()
        elif kind is FaultKind.HOLD:
            held = HELD_KINDS[fault.choice % len(HELD_KINDS)]
            self._trace_line(f"the next messages {held} are held for {fault.duration_ms} ms")
            cluster.network.hold(Hold(held, TimeMs(cluster.now_ms + fault.duration_ms)))
        elif kind in _TARGETED:
            self._armed.append(fault)
        elif kind is FaultKind.REASSIGN:
            order_move(cluster, fault.target, fault.choice)
            if fault.choice % 2 and fault.duration_ms:
                self.wider.cancel_later(fault)
        elif kind is FaultKind.DELETE_TOPIC:
            self._topics.strike(fault)
        elif kind in RETENTION_KINDS:
            self._retention.strike(fault)
        elif kind in DISK_KINDS:
            self.disks.strike(fault)
        elif not self.wider.strike(fault):
            self._cut(fault)

    def _aimed_at(self, aim: Aim) -> BrokerId:
        """Return the broker that a fault is aimed at as the controller has it now, NO_LEADER if there is none."""
        image, partition = self._cluster.controller.image, aim.partition
        if aim.topic:
            name = f"{aim.topic}-{partition}"
            partition = next((each for each, topic in image.topics.items() if topic == name), -1)
        state = image.partitions.get(partition)
        if state is None or isinstance(aim, LeaderOf):
            return NO_LEADER if state is None else state.leader
        return next((broker for broker in state.isr if broker != state.leader), NO_LEADER)

    def _struck_role(self, fault: Fault) -> str:
        """Return what the broker does that a fault strikes; "cluster" for a fault of no single broker."""
        if fault.kind not in OF_BROKERS:
            return "cluster"
        role = self._cluster.nodes[BrokerId(fault.target)].role
        if role is None:
            return "down"
        if any(isinstance(part, LeaderRole) for part in role.roles.values()):
            return "leader"
        return "follower" if role.roles else "idle"

    def _cut(self, fault: Fault) -> None:
        cluster, broker = self._cluster, NodeId(fault.target)
        peers = tuple(NodeId(other) for other in cluster.nodes if other != fault.target)
        if fault.kind is FaultKind.SLOW:
            self._trace_line(f"messages to broker {broker} are slow for {fault.duration_ms} ms")
            cluster.network.slow(broker, abs(fault.choice) % _SLOW_MS_MAX)
            cluster.at(cluster.now_ms + fault.duration_ms, lambda: cluster.network.quicken(broker))
            return
        ways = {
            FaultKind.ISOLATE: two_ways(broker, (ANYONE,)),
            FaultKind.DEAF: one_way((ANYONE,), (broker,)),
            FaultKind.MUTE: one_way((broker,), (ANYONE,)),
            FaultKind.CUT_CONTROLLER: two_ways(broker, (CONTROLLER,)),
            FaultKind.CUT_PEERS: two_ways(broker, peers),
        }[fault.kind]
        self._trace_line(f"broker {broker}: {fault.kind.value}, for {fault.duration_ms} ms")
        for way in ways:
            cluster.network.cut(*way)

        def heal() -> None:
            if not self.is_over:
                self._trace_line(f"broker {broker}: {fault.kind.name.lower().replace('_', ' ')} is over")
                for way in ways:
                    cluster.network.heal(*way)

        cluster.at(cluster.now_ms + fault.duration_ms, heal)

    def _end(self, broker: BrokerId, kind: FaultKind, down_ms: DurationMs) -> FaultKind:
        """End a broker's process if it runs, and return the kind of fault that this is: KILL if it may lose nothing."""
        cluster = self._cluster
        node = cluster.nodes[broker]
        if node.role is None:
            return kind
        if kind is not FaultKind.KILL and not self._may_lose(broker):
            kind = FaultKind.KILL
        node.kill()
        how = "dies"
        if kind is FaultKind.WIPE:
            node.wipe()
            how = "loses its disk"
        elif kind is FaultKind.POWER_LOSS:
            how = f"loses power and {node.lose_tails(self._entropy)} bytes"
        elif kind is FaultKind.BLOCK_LOSS:
            how = f"loses power and blocks of {lose_blocks(node, self._entropy)} bytes"
        if node.lossy_incarnation == node.incarnation:
            self._lossy.add(broker)
            self.loss_count += 1
        self._trace_line(f"broker {broker} {how}, down for {down_ms} ms")
        cluster.at(cluster.now_ms + down_ms, lambda: None if self.is_over else self._start(broker))
        return kind

    def _may_lose(self, broker: BrokerId) -> bool:
        if not self._cluster.options.is_strict:
            return True
        if not self._cluster.options.settings.rules.elr:
            return False  # Without ELR a member of the ISR leads on without what it lost (KIP-966).
        image = self._cluster.controller.image
        self._lossy = {
            lossy
            for lossy in self._lossy
            if not self._is_alive(lossy) or any(self._lacks(state, lossy) for state in image.partitions.values())
        }
        return len(self._lossy | {broker}) < self._cluster.options.settings.min_isr

    def _lacks(self, state: PartitionState, lossy: BrokerId) -> bool:
        """Return whether a partition still has a copy less, as a broker that lost records has not copied them again."""
        if lossy in state.replicas:
            return lossy not in state.isr
        return len(state.isr) < self._cluster.options.settings.min_isr  # A move may have removed it meanwhile.

    def _is_alive(self, broker: BrokerId) -> bool:
        role = self._cluster.nodes[broker].role
        status = self._cluster.controller.image.brokers.get(broker)
        return role is not None and status is not None and role.epoch == status.epoch

    def _start(self, broker: BrokerId) -> None:
        if self._cluster.nodes[broker].role is None:
            self._trace_line(f"broker {broker} starts")
            self._cluster.start_broker(broker)

    def _stop(self, broker: BrokerId, down_ms: DurationMs) -> bool:
        """Tell a broker to stop and return whether it will; it starts again `down_ms` after it has stopped."""
        node = self._cluster.nodes[broker]
        if node.role is None or not node.role.ask_to_stop():
            return False
        self._trace_line(f"broker {broker} is told to stop")
        incarnation = node.incarnation

        def look() -> None:
            if node.role is None or node.incarnation != incarnation:
                return
            if node.role.may_stop:
                node.stop()
                self._trace_line(f"broker {broker} has stopped cleanly, down for {down_ms} ms")
                if self._last_stop == broker:
                    self._last_stop = None
                start_ms = self._cluster.now_ms + (min(down_ms, _LAST_DOWN_MS) if self.is_over else down_ms)
                self._cluster.at(start_ms, partial(self._start_stopped, broker, incarnation))
            else:
                self._cluster.at(self._cluster.now_ms + _LOOK_MS, look)

        look()
        return True

    def _start_stopped(self, broker: BrokerId, incarnation: Incarnation) -> None:
        """Start a broker, unless it was started since it stopped."""
        if self._cluster.nodes[broker].incarnation == incarnation:
            self._start(broker)

    def _pause(self, broker: BrokerId, for_ms: DurationMs) -> None:
        node = self._cluster.nodes[broker]
        if node.role is None or node.is_paused:
            return
        self._trace_line(f"broker {broker} stands still for {for_ms} ms")
        node.is_paused = True
        incarnation = node.incarnation

        def resume() -> None:
            # A broker that was killed meanwhile runs in a new process, which only its own pause may hold.
            if node.incarnation == incarnation and node.role is not None:
                self._cluster.resume(broker)

        self._cluster.at(self._cluster.now_ms + for_ms, resume)

    def _after_event(self, cluster: Cluster, node: NodeId, message: Message, _out: Outbox) -> None:
        """Check after each event whether a targeted fault is due."""
        if not self._armed or node >= CONTROLLER:
            return
        role = cluster.nodes[BrokerId(node)].role
        if role is None:
            return
        partition = getattr(message, "partition", None)
        part = None if partition is None else role.roles.get(partition)
        if not isinstance(part, LeaderRole) or partition is None:
            return
        high = part.log.log.high_watermark
        rose = high > self._highs.get((role.broker, partition), high)
        self._highs[role.broker, partition] = high
        for fault in self._armed:
            if fault.kind is FaultKind.CRASH_AT_COMMIT and rose:
                break
            if fault.kind is FaultKind.CRASH_AT_ISR and isinstance(message, AlterPartitionResponse):
                break
        else:
            return
        self._armed.remove(fault)
        self._trace_line(f"broker {node}: {fault.kind.value}")
        self.on_strike(fault, True)
        self._end(role.broker, FaultKind.POWER_LOSS if fault.choice % 2 else FaultKind.KILL, fault.duration_ms)

    def _trace_line(self, text: str) -> None:
        self._cluster.trace.line(self._cluster.now_ms, text)


def _ignore(_fault: Fault, _is_effective: bool) -> None:
    pass
