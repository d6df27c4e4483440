"""Let two brokers lead partitions of `__consumer_offsets` in turn, and hold their coordinators to answers and timers.

What it decides: who leads, what is replicated, late or cut, when timers are due; each answer is judged by the request
that it answers, which is answered once.

Constraints: one broker leads a partition at a time, and inherits its log. What waits at the end of a leadership is
answered then; a result of an append that comes later changes nothing.

Source: CoordinatorRuntime 4.3.1, as facts: scheduleLoadOperation, scheduleUnloadOperation, deferred writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.ids import LeaderEpoch, Offset, PartitionId, TopicPartition
from broker.units import DurationMs, TimeMs
from replication.groups.common.coordinator import service_options
from replication.groups.connection_messages import GroupResponse, ShardDue, ShardRead
from replication.groups.hosted_coordinator import HostedCoordinator, HostedRoleOptions
from replication.groups.layout import Layout
from replication.roles.messages import Address, NodeId, ProduceResponse
from replication.roles.outbox import Outbox
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.offsets_world import WALL_MS, Due, OffsetsHost, OffsetsLog

TOPICS: Final = {"t": 2, "u": 1}
EVERY: Final = tuple(
    TopicPartition(topic, PartitionId(each)) for topic, count in TOPICS.items() for each in range(count)
)
HOME: Final = {"b": 3, "d": 3, "a": 4, "c": 4, "g": 4}
"""By Java's hashes 98, 100, 97, 99 and 103, of two partitions behind those of the topics: c is classic, g a consumer
group, the others have no members."""
CALLER: Final = Address(NodeId(9))
LOAD_MS: Final = 25
LOOK_MS: Final = 20
WAIT_MS: Final = 5_000
_TIMER_COUNT_MAX: Final = 15
"""More timers than a coordinator has at a time that sets one for what is due next."""


@attrs.define
class Asked:
    """Hold a request that waits: which broker has it, until when, and what its answer must be."""

    broker: int
    group_id: str
    request: Any
    until_ms: int
    is_right: Callable[[Any], bool]
    number: int = -1
    end_offset: int = -1


class ShardBrokers:
    """Run two brokers and their logs."""

    def __init__(self, draws: Draws) -> None:
        self._draws, self._clock, self._due = draws, ManualClock(), Due()
        options = HostedRoleOptions(
            layout=Layout(tuple(TOPICS.items()), 2),
            service=service_options("uniform", TOPICS, 1),
            load_ms_max=DurationMs(LOAD_MS),
            wall_clock_ms=WALL_MS,
        )
        self._logs = {3: OffsetsLog(), 4: OffsetsLog()}
        self._hosts = [OffsetsHost(each, self._clock) for each in range(2)]
        self._roles = [
            HostedCoordinator(host, options, self._clock, SplitMix64(draws.number(0, 10**6))) for host in self._hosts
        ]
        self._state: dict[tuple[int, int], str] = {}
        """What each broker does with a partition: "reads" or "serves"; nothing where it does not coordinate."""
        self._read_from: dict[tuple[int, int], int] = {}
        self._open: dict[int, Asked] = {}
        self._pending: dict[int, tuple[int, int, int]] = {}
        """The appends without a result, by number: broker, partition, first offset."""
        self._group_of: dict[int, str] = {}
        """The group of each append, by number."""
        self._moved_ms = {3: 0, 4: 0}
        self._result: dict[int, ErrorCode] = {}
        self._is_losing, self._told = False, ""

    def _expect(self, holds: bool, told: str) -> None:
        if not holds:
            self._told = self._told or f"at {self._now}: {told}"

    @property
    def _now(self) -> int:
        return int(self._clock.now_ms())

    # What brokers do.

    def _do(self, broker: int, action: Callable[[Outbox], None]) -> None:
        """Let a broker handle something, and take all that it says."""
        out, host = Outbox(), self._hosts[broker]
        action(out)
        for partition, number, base, batch in host.appended:
            self._pending[number] = broker, partition, base
            self._group_of[number] = self._logs[partition].group_of(batch)
        self._due.add(self._now, broker, out)
        self._told = self._told or host.told
        for receiver, answer in out.sent:
            assert isinstance(answer, GroupResponse)
            asked = self._open.pop(int(answer.ticket), None)
            is_right = asked is not None and asked.broker == broker and asked.is_right(answer.response)
            named = receiver == CALLER and answer.broker == broker and answer.session == 1
            self._expect(is_right and named, f"{broker} answers {answer} to {asked}")

    def _handle(self, broker: int, message: Any) -> None:
        # The broker's wall clock is set forth and back; coordinators do not look at it.
        at_ms = TimeMs(self._now + self._draws.one((0, 10**9)))
        self._do(broker, lambda out: self._roles[broker].handle(message, CALLER, at_ms, out))

    def _wait(self, for_ms: int | None = None) -> None:
        """Let time pass, with all timers in it."""
        drawn = self._draws.one((0, 5, 30, 200, 1_000, 4_000)) if for_ms is None else for_ms
        end_ms = self._now + drawn
        while (due := self._due.pop(end_ms)) is not None and not self._told:
            at_ms, broker, message = due
            self._clock.set(TimeMs(at_ms))
            shard = self._roles[broker].shards.get(message.partition)
            if isinstance(message, ShardRead) and shard is not None and message.number == shard.number:
                self._state[broker, message.partition] = "serves"
                self._read_from[broker, message.partition] = self._logs[message.partition].log_start_offset
            self._handle(broker, message)
            self._look()
        self._clock.set(TimeMs(max(end_ms, self._now)))
        self._look()

    def _look(self) -> None:
        """See that nobody waits too long, and that no timer of a group is forgotten."""
        for asked in self._open.values():
            is_stable = 0 <= asked.end_offset <= self._logs[HOME[asked.group_id]].high_watermark
            until_ms = self._moved_ms[HOME[asked.group_id]] + LOOK_MS if is_stable else asked.until_ms
            has_led = HOME[asked.group_id] in self._hosts[asked.broker].leads
            self._expect(self._now <= until_ms or (is_stable and not has_led), f"{asked} still waits")
        for (broker, partition), state in self._state.items():
            shard = self._roles[broker].shards[partition]
            if state == "serves" and shard.services:
                next_ms = min(each.next_ms() for each in shard.services.values()) - WALL_MS
                set_ms = self._due.times_ms(broker, ShardDue(partition, shard.number))
                is_set = min(set_ms, default=next_ms + 1) <= max(next_ms, self._now)
                is_right = is_set and len(set_ms) <= _TIMER_COUNT_MAX
                self._expect(is_right, f"a group is due at {next_ms}, its coordinator at {sorted(set_ms)}")

    # Replication and leadership.

    def _replicate(self) -> None:
        """Let the high watermark pass one batch more; its leader hears of its own appends."""
        partition = self._draws.one((3, 4))
        log = self._logs[partition]
        leading = [broker for broker in range(2) if partition in self._hosts[broker].leads]
        if not leading or log.high_watermark == log.log_end_offset:
            return
        place = [base for base, _ in log.batches].index(log.high_watermark)
        base, log.high_watermark = log.high_watermark, log.end_of(place)
        self._moved_ms[partition] = self._now
        for number, (broker, of_partition, at) in list(self._pending.items()):
            if (of_partition, at) == (partition, base) and broker in leading:
                del self._pending[number]
                error = self._draws.one((ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
                self._result[number] = ErrorCode.NONE
                self._handle(broker, ProduceResponse(partition, number, -1, error, Offset(base), True))
                self._expect(all(each.number != number for each in self._open.values()), f"{number} still waits")
        self._look()

    def _time_out(self) -> None:
        """Let the oldest append have waited too long: it stands in the log all the same."""
        late = [
            number for number, (broker, partition, _) in self._pending.items() if (broker, partition) in self._state
        ]
        if late:
            number = late[0]
            broker, partition, base = self._pending.pop(number)
            self._doubted |= {"c", "g"}
            self._result[number] = error = ErrorCode.REQUEST_TIMED_OUT
            self._handle(broker, ProduceResponse(partition, number, -1, error, Offset(base), True))
            self._expect(all(each.number != number for each in self._open.values()), f"{number} still waits")

    def _resign(self) -> None:
        """Let a broker learn that it does not lead before its coordinator does."""
        partition = self._draws.one((3, 4))
        for broker, host in enumerate(self._hosts):
            if self._state.get((broker, partition)) == "serves":
                host.leads.pop(partition, None)
        self._doubted |= {"c", "g"}

    def _move(self) -> None:
        partition = self._draws.one((3, 4))
        log, draws = self._logs[partition], self._draws
        leading = [broker for broker, of_partition in self._state if of_partition == partition]
        if leading and partition in self._hosts[leading[0]].leads and draws.is_one_in(3):
            self._gain(leading[0], partition)
            return
        late = [(number, each) for number, each in self._pending.items() if each[1] == partition]
        self._doubted |= {"c", "g"}
        for broker in leading:
            self._lose(broker, partition)
        ends = [base for base, _ in log.batches if base >= log.high_watermark]
        log.cut(draws.one((*ends, log.log_end_offset, log.log_end_offset)))
        if partition == HOME["b"]:
            log.log_start_offset = draws.number(log.log_start_offset, log.high_watermark)
        if not draws.is_one_in(3):
            self._gain(draws.number(0, 1), partition)
        for number, (broker, _, base) in late:
            del self._pending[number]
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            self._handle(broker, ProduceResponse(partition, number, -1, error, Offset(base), True))

    def _lose(self, broker: int, partition: int) -> None:
        self._hosts[broker].leads.pop(partition, None)
        del self._state[broker, partition]
        self._is_losing = True
        self._do(broker, lambda out: self._roles[broker].on_lost(partition, TimeMs(self._now), out))
        self._is_losing = False
        left = [each for each in self._open.values() if (each.broker, HOME[each.group_id]) == (broker, partition)]
        self._expect(not left, f"{broker} does not lead any more, and owes {left}")

    def _gain(self, broker: int, partition: int) -> None:
        """Let a broker lead; the coordinator reads, once, unless it is there already."""
        self._hosts[broker].leads[partition] = self._logs[partition]
        is_new = (broker, partition) not in self._state
        self._state.setdefault((broker, partition), "reads")
        woken: list[tuple[int, Any]] = []

        def gain(out: Outbox) -> None:
            for each in (partition, 0, 2, 5, 99):
                self._roles[broker].on_gained(each, LeaderEpoch(1), TimeMs(self._now), out)
            woken.extend(out.woken)

        self._do(broker, gain)
        is_right = [0 < delay <= LOAD_MS and isinstance(each, ShardRead) for delay, each in woken] == [True] * is_new
        self._expect(is_right, f"{broker} begins to lead {partition}, and waits for {woken}")

    def _settle(self) -> None:
        """Replicate all there is."""
        for _ in range(200):
            if self._told or all(log.high_watermark == log.log_end_offset for log in self._logs.values()):
                break
            self._replicate()
