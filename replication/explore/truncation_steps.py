"""Compute the steps of Model 1 by the rules of replication: one pure function for each kind of step.

A leader knows a follower's log end only from a fetch of that follower, in this epoch or an earlier one; the rule that
answers fetches computes it.

Source: the rules' own modules; the steps are those of hachikuji/kafka-specification, d68782b, 2020-01.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch, Offset
from replication.explore.tiny_log import LATER, Record, epochs_of
from replication.rules.alter_partition import validate
from replication.rules.epochs import assigned, latest_epoch
from replication.rules.fetch import FetchDecision, FetchRequest, after_answer, decide_fetch
from replication.rules.high_watermark import leader_high_watermark
from replication.rules.isr import is_caught_up, may_join, propose_expand, propose_shrink
from replication.rules.partition import (
    BrokerStatus,
    Follower,
    LeaderState,
    LogState,
    PartitionEpoch,
    PartitionState,
)
from replication.rules.settings import Moment, PartitionSettings
from replication.rules.switches import Rules, without
from replication.rules.truncation import FirstStep, answer_epoch_end, cut_for, first_step, out_of_range, truncated

NOBODY: Final = -1

_BROKER_EPOCH: Final = BrokerEpoch(0)
_UNCHANGED: Final = PartitionEpoch(0)


class Replica(NamedTuple):
    """Hold one replica's log, high watermark and leader epoch; `isr` is used on a leader only."""

    log: tuple[Record, ...]
    high_watermark: int
    leader: int
    epoch: int
    isr: tuple[int, ...]


class Order(NamedTuple):
    """Describe one LeaderAndIsr request; its leader epoch is its index among the controller's requests."""

    leader: int
    isr: tuple[int, ...]


class Control(NamedTuple):
    """Hold the controller's state: every request sent so far, the ISR now, and the number of the next record."""

    orders: tuple[Order, ...]
    isr: tuple[int, ...]
    next_record: int


class TruncationSteps:
    """Compute the steps under one release's rules, for a partition on the brokers `ids`."""

    def __init__(self, rules: Rules, ids: tuple[int, ...]) -> None:
        self.rules = rules
        self.ids = ids
        self._any_epoch = without(rules, "fetch_epoch_check")
        self._settings = PartitionSettings(rules=rules)
        status = BrokerStatus(epoch=_BROKER_EPOCH)
        self._moment = Moment(LATER, {BrokerId(broker): status for broker in ids})

    def ordered(self, control: Control, epoch_max: int, *, unclean: bool) -> list[tuple[str, Control]]:
        """Return the controller's steps: elect a leader, or drop a replica, each in a new leader epoch."""
        epoch = len(control.orders)
        if epoch > epoch_max:
            return []
        leader = control.orders[-1].leader if control.orders else NOBODY
        found = []
        for broker in control.isr:
            if broker != leader:
                found.append((f"the controller elects {broker} in epoch {epoch}", Order(broker, control.isr)))
            isr = tuple(member for member in control.isr if member != broker)
            if broker == leader:
                words = f"the controller drops leader {broker} in epoch {epoch}"
                found.append((words, Order(NOBODY, isr or control.isr)))
            elif isr:
                found.append((f"the controller drops {broker} from the ISR in epoch {epoch}", Order(leader, isr)))
        if unclean and leader == NOBODY and control.orders:
            for broker in self.ids:
                if broker not in control.isr:
                    words = f"the controller elects {broker} uncleanly in epoch {epoch}"
                    found.append((words, Order(broker, (broker,))))
        return [(words, Control((*control.orders, order), order.isr, control.next_record)) for words, order in found]

    def led(self, broker: int, replica: Replica, orders: tuple[Order, ...]) -> list[tuple[str, Replica]]:
        """Return the steps in which a replica becomes leader, or learns that the partition is leaderless."""
        found = []
        for epoch, order in enumerate(orders):
            if epoch > replica.epoch and order.leader in (broker, NOBODY):
                led = "it leads" if order.leader == broker else "nobody leads"
                taken = replica._replace(leader=order.leader, epoch=epoch, isr=order.isr)
                found.append((f"{broker} learns that {led} epoch {epoch}", taken))
        return found

    def written(self, broker: int, replica: Replica, record: int) -> tuple[str, Replica]:
        """Return the step in which a leader appends the record of that number."""
        log = (*replica.log, Record(record, replica.epoch))
        return f"{broker} appends m{record}", replica._replace(log=log)

    def followed(
        self, broker: int, replica: Replica, leader: int, led: Replica, orders: tuple[Order, ...]
    ) -> list[tuple[str, Replica]]:
        """Return the steps in which a replica begins to follow `leader`, whose state is `led`."""
        found = []
        for epoch, order in enumerate(orders):
            if order.leader != leader or epoch <= replica.epoch:
                continue
            log = self._cut_to_follow(broker, replica, leader, led, epoch)
            if log is not None:
                words = f"{broker} learns that it follows {leader} in epoch {epoch}" + _cut_words(replica, log)
                following = _after(replica, log)._replace(leader=leader, epoch=epoch, isr=order.isr)
                found.append((words, following))
        return found

    def fetched(self, broker: int, replica: Replica, leader: int, led: Replica) -> list[tuple[str, Replica]]:
        """Return the step in which a follower fetches: it gets one record, or truncates its log."""
        log, source = self.log_of(broker, replica), self.log_of(leader, led)
        answer = self._decided(broker, replica, leader, led, self.rules).answer
        words = f"{broker} fetches from {leader} at {log.end_offset}"
        if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            cut_to = out_of_range(log, source.start_offset, source.end_offset).cut_to
            log = log if cut_to is None else truncated(log, cut_to, self.rules)
        elif answer.error is not ErrorCode.NONE:
            return []
        elif answer.diverging is not None:
            log = after_answer(log, answer, self.rules)
        elif log.end_offset < source.end_offset:
            record = led.log[log.end_offset]
            longer = replica._replace(log=(*replica.log, record))
            log = after_answer(self.log_of(broker, longer), answer, self.rules)
            taken = longer._replace(high_watermark=log.high_watermark)
            return [(f"{words} and gets m{record.number}", taken)]
        following = _after(replica, log)
        return [(words + _cut_words(replica, log), following)] if following != replica else []

    def changed_isr(
        self, leader: int, led: Replica, other: int, replica: Replica, control: Control
    ) -> list[tuple[str, Replica, Control]]:
        """Return the step in which a leader shrinks or expands the ISR, accepted at once."""
        log = self.log_of(leader, led)
        state = self._leader_state(leader, led, {other: replica})
        follower = state.follower(BrokerId(other))
        assert follower is not None, (leader, other)
        if other in led.isr:
            if is_caught_up(follower, log.end_offset, LATER, self._settings):
                return []
            words = f"{leader} drops {other} from the ISR"
            state = propose_shrink(state, (BrokerId(other),), _BROKER_EPOCH)
        else:
            if not may_join(state, log, follower, self._moment, self._settings):
                return []
            words = f"{leader} adds {other} to the ISR"
            state = propose_expand(state, BrokerId(other), _BROKER_EPOCH)
        assert state.pending is not None
        known = PartitionState(
            replicas=tuple(BrokerId(broker) for broker in self.ids),
            isr=tuple(BrokerId(broker) for broker in control.isr),
            leader=BrokerId(control.orders[-1].leader),
            leader_epoch=LeaderEpoch(len(control.orders) - 1),
            partition_epoch=_UNCHANGED,
        )
        if validate(known, state.pending, self._moment.brokers, self.rules) is not ErrorCode.NONE:
            return []
        isr = tuple(sorted(state.pending.members))
        return [(words, led._replace(isr=isr), control._replace(isr=isr))]

    def may_raise(self, leader: int, led: Replica, others: dict[int, Replica]) -> bool:
        """Return whether a leader may raise its high watermark, given all other replicas."""
        state = self._leader_state(leader, led, others)
        log = self.log_of(leader, led)
        return leader_high_watermark(state, log, self._moment, self._settings) > log.high_watermark

    def log_of(self, broker: int, replica: Replica) -> LogState:
        """Return a replica's log as the rules see it; a leader's epoch is assigned in the cache."""
        noted = epochs_of(replica.log)
        end_offset = Offset(len(replica.log))
        if self.rules.epoch_cached_on_election and replica.leader == broker and latest_epoch(noted) < replica.epoch:
            noted = assigned(noted, LeaderEpoch(replica.epoch), end_offset)
        return LogState(Offset(0), end_offset, Offset(replica.high_watermark), noted)

    def _cut_to_follow(self, broker: int, replica: Replica, leader: int, led: Replica, epoch: int) -> LogState | None:
        """Return the log of a replica that begins to follow; None if the leader does not answer yet."""
        log = self.log_of(broker, replica)
        rules = self.rules
        state = self._leader_state(leader, led, {})
        if rules.truncation_epoch_check and led.leader != leader:
            return log if first_step(log, rules) is FirstStep.FETCH else None
        for _ in range(len(replica.log) + 1):
            step = first_step(log, rules)
            if step is FirstStep.FETCH:
                return log
            if step is FirstStep.CUT_TO_HIGH_WATERMARK:
                return truncated(log, log.high_watermark, rules)
            error, end = answer_epoch_end(
                state, self.log_of(leader, led), latest_epoch(log.epochs), LeaderEpoch(epoch), rules
            )
            if error is not ErrorCode.NONE:
                return None
            cut = cut_for(log, end, rules)
            log = truncated(log, cut.end_offset, rules)
            if cut.complete:
                return log
        raise AssertionError(f"{broker} truncates for ever: {replica}, {led}")

    def _decided(self, broker: int, replica: Replica, leader: int, led: Replica, rules: Rules) -> FetchDecision:
        request = FetchRequest(
            replica=BrokerId(broker),
            offset=Offset(len(replica.log)),
            leader_epoch=LeaderEpoch(replica.epoch),
            last_fetched_epoch=LeaderEpoch(replica.log[-1].epoch if replica.log else -1),
        )
        state = self._leader_state(leader, led, {})
        return decide_fetch(state, self.log_of(leader, led), request, self._moment, rules)

    def _leader_state(self, leader: int, led: Replica, others: dict[int, Replica]) -> LeaderState:
        start_offset = next((at for at, record in enumerate(led.log) if record.epoch == led.epoch), len(led.log))
        return LeaderState(
            broker=BrokerId(leader),
            leader_epoch=LeaderEpoch(led.epoch),
            partition_epoch=_UNCHANGED,
            epoch_start_offset=Offset(start_offset),
            isr=tuple(BrokerId(broker) for broker in led.isr),
            followers=tuple(
                self._known(broker, others[broker], leader, led) if broker in others else Follower(BrokerId(broker))
                for broker in self.ids
                if broker != leader
            ),
        )

    def _known(self, broker: int, replica: Replica, leader: int, led: Replica) -> Follower:
        unknown = Follower(BrokerId(broker), broker_epoch=_BROKER_EPOCH)
        if replica.leader != leader:
            return unknown
        # What a leader knows may stem from a fetch in an epoch before; whether that counts is for the rules to say.
        if not self._decided(broker, replica, leader, led, self._any_epoch).is_recorded:
            return unknown
        return attrs.evolve(unknown, end_offset=Offset(len(replica.log)), leader_epoch=LeaderEpoch(replica.epoch))


def _after(replica: Replica, log: LogState) -> Replica:
    return replica._replace(log=replica.log[: log.end_offset], high_watermark=log.high_watermark)


def _cut_words(replica: Replica, log: LogState) -> str:
    return f" and cuts its log to {log.end_offset}" if log.end_offset < len(replica.log) else ""
