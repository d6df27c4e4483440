"""Model 2: check that every leader has all committed records when brokers are fenced and logs lose their ends.

Bounds on fences, restarts with and without loss, shrinks and records keep the number of states finite.

Source: KIP-966; Vanlightly/kafka-tlaplus, kip-966, 823615e8, 2025-01, for the property and the events.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

import attrs

from broker.errors import UsageError
from broker.ids import BrokerEpoch, BrokerId
from replication.explore.elr_steps import PRESENT, ControllerState, Disk, ElrSteps
from replication.explore.search import check_bounds
from replication.explore.tiny_log import Interned, Record, shown
from replication.rules.election import ElectionPolicy, elect
from replication.rules.partition import BrokerStatus, LeaderState, PartitionState
from replication.rules.settings import PartitionSettings
from replication.rules.switches import CURRENT, Rules, Truncation

BROKERS: Final = (0, 1, 2)
MIN_ISR: Final = 2

_DISK_BITS: Final = 12
_DISK_MASK: Final = (1 << _DISK_BITS) - 1
_LEADER_BITS: Final = 24
_LEADER_MASK: Final = (1 << _LEADER_BITS) - 1
_LEADER_SHIFT: Final = _DISK_BITS * len(BROKERS)
_CONTROLLER_BITS: Final = 24
_CONTROLLER_SHIFT: Final = _LEADER_SHIFT + _LEADER_BITS
_LEDGER_SHIFT: Final = _CONTROLLER_SHIFT + _CONTROLLER_BITS
_LEDGER_BITS: Final = 12


@attrs.frozen(kw_only=True)
class ElrScope:
    """Bound the model: how often each event may happen in one history.

    A loss is a restart that loses the end of the log; a restart loses nothing. The return of a broker in the same
    incarnation, after a broken connection, is not bounded.
    """

    records: int = 1
    fences: int = 3
    losses: int = 1
    restarts: int = 0
    shrinks: int = 1

    def __attrs_post_init__(self) -> None:
        check_bounds(self, shrinks=(0, 4), records=(1, 4), fences=(0, 6), losses=(0, 6), restarts=(0, 6))


class Ledger(NamedTuple):
    """Hold the records ever committed, and the number of the next record."""

    committed: tuple[Record, ...]
    next_record: int


class BrokerEvent(NamedTuple):
    """Describe one event of a broker, and the controller's state after it.

    `changes_partition` says that the partition's state changes; `lossy` that the broker loses the end of its log.
    """

    words: str
    controller: int
    broker: int
    changes_partition: bool
    lossy: bool


_WAYS_BACK: Final = (
    (False, False, "is back"),
    (True, False, "starts again with all it had"),
    (True, True, "starts again; of its log is left"),
)


class ElrModel:
    """Model brokers with fenced sessions and lossy logs, under one release's rules and one election policy.

    A state is the numbers of the disks, the leader, the controller's state and the ledger, packed into one int. Steps
    are cached by the numbers that they depend on. Raises UsageError for rules that do not truncate on fetch.
    """

    def __init__(self, scope: ElrScope, rules: Rules = CURRENT, policy: ElectionPolicy = elect) -> None:
        if rules.truncation is not Truncation.ON_FETCH:
            raise UsageError("the model 'elr' cuts logs on fetching, as Kafka does since 2.8; these rules do not")
        self.scope = scope
        self._steps = ElrSteps(PartitionSettings(rules=rules, min_isr=MIN_ISR), policy)
        self._disks: Interned[Disk] = Interned(_DISK_BITS)
        self._leaders: Interned[LeaderState | None] = Interned(_LEADER_BITS)
        self._controllers: Interned[ControllerState] = Interned(_CONTROLLER_BITS)
        self._ledgers: Interned[Ledger] = Interned(_LEDGER_BITS)
        self._events = cache(self._find_events)
        self._heard = cache(self._find_heard)
        self._arrived = cache(self._find_arrived)
        self._raised = cache(self._find_raised)
        self._fetched = cache(self._find_fetched)
        self._asked = cache(self._find_asked)
        self._is_complete = cache(self._find_complete)

    def initial(self) -> int:
        """Return the state of empty logs, with broker 0 leading and every replica in sync."""
        brokers = tuple(BrokerId(broker) for broker in BROKERS)
        partition = PartitionState(replicas=brokers, isr=brokers, leader=brokers[0], partition_epoch=PRESENT)
        status = BrokerStatus(epoch=BrokerEpoch(0))
        scope = self.scope
        bounds = (scope.fences, scope.losses, scope.restarts, scope.shrinks)
        controller = self._controllers.number(ControllerState(partition, (status,) * len(BROKERS), None, *bounds))
        disk = self._disks.number(Disk((), 0))
        none = self._leaders.number(None)
        ledger = self._ledgers.number(Ledger((), 0))
        return self._packed([disk] * len(BROKERS), self._heard(controller, none, disk), controller, ledger)

    def steps(self, state: int) -> list[tuple[str, int]]:
        """Return every step from a state: a description of the step, and the next state."""
        disks = [state >> _DISK_BITS * broker & _DISK_MASK for broker in BROKERS]
        leader = state >> _LEADER_SHIFT & _LEADER_MASK
        controller = state >> _CONTROLLER_SHIFT & _LEADER_MASK
        ledger = state >> _LEDGER_SHIFT
        found = list(self._broker_steps(disks, leader, controller, ledger))
        if self._controllers.values[controller].in_flight is not None:
            after, heard = self._arrived(controller, leader)
            words = "the request to change the ISR reaches the controller"
            found.append((words, self._packed(disks, heard, after, ledger)))
        if self._leaders.values[leader] is not None:
            found.extend(self._leader_steps(disks, leader, controller, ledger))
        return found

    def renamed(self, state: int) -> tuple[int, int]:
        """Return the state itself, and 1: no two brokers are alike, as elections depend on the replicas' order."""
        return state, 1

    def broken(self, state: int) -> str | None:
        """Return how a state violates LeaderCompleteness, None if it does not."""
        leader = self._leaders.values[state >> _LEADER_SHIFT & _LEADER_MASK]
        if leader is None:
            return None
        disk, ledger = state >> _DISK_BITS * leader.broker & _DISK_MASK, state >> _LEDGER_SHIFT
        if self._is_complete(disk, ledger):
            return None
        held, committed = self._disks.values[disk].log, self._ledgers.values[ledger].committed
        return (
            f"LeaderCompleteness: {leader.broker} leads epoch {leader.leader_epoch} with [{shown(held)}], "
            f"but [{shown(committed)}] was committed"
        )

    def _find_complete(self, disk: int, ledger: int) -> bool:
        committed = self._ledgers.values[ledger].committed
        return self._disks.values[disk].log[: len(committed)] == committed

    def state_text(self, state: int) -> str:
        """Return a state on one line."""
        controller = self._controllers.values[state >> _CONTROLLER_SHIFT & _LEADER_MASK]
        partition = controller.partition
        parts = []
        for broker, status in zip(BROKERS, controller.statuses, strict=True):
            disk = self._disks.values[state >> _DISK_BITS * broker & _DISK_MASK]
            fenced = " fenced" if status.fenced else ""
            parts.append(f"{broker}{fenced}: [{shown(disk.log)}] committed {disk.high_watermark}")
        leader = partition.leader if partition.has_leader else "none"
        sets = f"ISR {_listed(partition.isr)}; ELR {_listed(partition.elr)}"
        return "; ".join([*parts, f"leader {leader} epoch {partition.leader_epoch}", sets])

    def _packed(self, disks: list[int], leader: int, controller: int, ledger: int) -> int:
        packed = ledger << _LEDGER_SHIFT | controller << _CONTROLLER_SHIFT | leader << _LEADER_SHIFT
        for broker, disk in enumerate(disks):
            packed |= disk << _DISK_BITS * broker
        return packed

    def _broker_steps(self, disks: list[int], leader: int, controller: int, ledger: int) -> Iterator[tuple[str, int]]:
        """Yield the events of brokers: fenced, back, or restarted."""
        for event in self._events(controller):
            for words, disk in self._left_on_disk(event, disks[event.broker]):
                after = [*disks[: event.broker], disk, *disks[event.broker + 1 :]]
                heard = leader
                if event.changes_partition:
                    chosen = self._controllers.values[event.controller].partition.leader
                    heard = self._heard(event.controller, leader, after[chosen])
                yield words, self._packed(after, heard, event.controller, ledger)

    def _find_events(self, number: int) -> list[BrokerEvent]:
        return list(self._events_of(self._controllers.values[number]))

    def _events_of(self, controller: ControllerState) -> Iterator[BrokerEvent]:
        for broker, status in enumerate(controller.statuses):
            if not status.fenced:
                if controller.fences_left:
                    after = self._steps.fenced(controller, broker)
                    yield self._event(f"{broker} is fenced", controller, after, broker, lossy=False)
                continue
            for new_epoch, lossy, words in _WAYS_BACK:
                if controller.losses_left if lossy else controller.restarts_left or not new_epoch:
                    after = self._steps.returned(controller, broker, new_epoch=new_epoch, lossy=lossy)
                    yield self._event(f"{broker} {words}", controller, after, broker, lossy=lossy)

    def _event(
        self, words: str, before: ControllerState, after: ControllerState, broker: int, *, lossy: bool
    ) -> BrokerEvent:
        changes = after.partition != before.partition
        return BrokerEvent(words, self._controllers.number(after), broker, changes_partition=changes, lossy=lossy)

    def _left_on_disk(self, event: BrokerEvent, number: int) -> list[tuple[str, int]]:
        if not event.lossy:
            return [(event.words, number)]
        disk = self._disks.values[number]
        kept_counts = range(max(1, len(disk.log)))
        return [
            (f"{event.words} {kept}", self._disks.number(Disk(disk.log[:kept], min(disk.high_watermark, kept))))
            for kept in kept_counts
        ]

    def _find_heard(self, controller: int, leader: int, disk: int) -> int:
        """Return the number of the leader's state once the leader has the controller's metadata."""
        decided = self._controllers.values[controller]
        decided.partition.check_invariants()
        state = self._steps.leader_state(decided, self._leaders.values[leader], self._disks.values[disk])
        return self._leaders.number(state)

    def _find_arrived(self, controller: int, leader: int) -> tuple[int, int]:
        after, state = self._steps.delivered(self._controllers.values[controller], self._leaders.values[leader])
        return self._controllers.number(after), self._leaders.number(state)

    def _leader_steps(self, disks: list[int], leader: int, controller: int, ledger: int) -> Iterator[tuple[str, int]]:
        """Yield the leader's own steps, and its steps with followers."""
        state, decided, books = (
            self._leaders.values[leader],
            self._controllers.values[controller],
            self._ledgers.values[ledger],
        )
        assert state is not None
        own, number = state.broker, disks[state.broker]
        disk = self._disks.values[number]
        if books.next_record < self.scope.records:
            record = Record(books.next_record, state.leader_epoch)
            longer = self._disks.number(Disk((*disk.log, record), disk.high_watermark))
            after = self._ledgers.number(Ledger(books.committed, books.next_record + 1))
            yield f"{own} appends m{record.number}", self._with(disks, own, longer, leader, controller, after)
        raised = self._raised(leader, number, controller)
        if raised != number:
            committed = max(books.committed, disk.log[: self._disks.values[raised].high_watermark], key=len)
            after = self._ledgers.number(Ledger(committed, books.next_record))
            words = f"{own} raises its high watermark to {self._disks.values[raised].high_watermark}"
            yield words, self._with(disks, own, raised, leader, controller, after)
        for broker in BROKERS:
            if broker == own:
                continue
            if not decided.statuses[broker].fenced:
                epoch = decided.statuses[broker].epoch
                fetched = self._fetched(leader, number, broker, disks[broker], epoch)
                if fetched is not None:
                    yield f"{broker} fetches", self._with(disks, broker, fetched[1], fetched[0], controller, ledger)
            asked = self._asked(leader, number, broker, controller)
            if asked is not None:
                words, after, heard = asked
                yield words, self._packed(disks, heard, after, ledger)

    def _find_raised(self, leader: int, disk: int, controller: int) -> int:
        held, state = self._disks.values[disk], self._leaders.values[leader]
        assert state is not None
        raised = self._steps.high_watermark(state, held, self._controllers.values[controller])
        return self._disks.number(Disk(held.log, raised))

    def _find_fetched(
        self, leader: int, source: int, broker: int, disk: int, epoch: BrokerEpoch
    ) -> tuple[int, int] | None:
        state, disks = self._leaders.values[leader], self._disks.values
        assert state is not None
        found = self._steps.fetched(state, disks[source], broker, disks[disk], BrokerStatus(epoch=epoch))
        return None if found is None else (self._leaders.number(found[0]), self._disks.number(found[1]))

    def _find_asked(self, leader: int, disk: int, broker: int, controller: int) -> tuple[str, int, int] | None:
        """Return the leader's step that removes a follower from the ISR, or asks to add the follower."""
        state, decided = self._leaders.values[leader], self._controllers.values[controller]
        assert state is not None
        held = self._disks.values[disk]
        found = None
        if broker in state.isr:
            words = f"{state.broker} drops {broker} from the ISR"
            if decided.shrinks_left:
                found = self._steps.shrunk(decided, state, held, broker)
        elif decided.in_flight is None:
            words = f"{state.broker} asks for {broker} to be added to the ISR"
            found = self._steps.proposed(decided, state, held, broker)
        if found is None:
            return None
        after, heard = found
        return words, self._controllers.number(after), self._leaders.number(heard)

    def _with(self, disks: list[int], broker: int, disk: int, leader: int, controller: int, ledger: int) -> int:
        return self._packed([*disks[:broker], disk, *disks[broker + 1 :]], leader, controller, ledger)


def _listed(brokers: tuple[BrokerId, ...]) -> str:
    return ",".join(map(str, brokers)) or "empty"
