"""Model 1: check that diverging logs become equal again without the loss of a committed record.

Bounds on replicas, records, log size and leader epochs keep the number of states finite. Three replicas, two records
and epochs up to 2 are the smallest useful bounds: with two replicas several bugs do not show.

Source: hachikuji/kafka-specification (KafkaReplication, KafkaTruncateToHighWatermark, Kip101, Kip279, Kip320,
Kip320FirstTry), d68782b, 2020-01. Difference: a replica may join the ISR as soon as it has reached the high watermark
and the start of the leader's epoch, as in Kafka's code; the specification also requires that the high watermark has
reached the start of the epoch.
"""

from __future__ import annotations

from functools import cache
from itertools import permutations
from typing import Final

import attrs

from replication.explore.search import check_bounds
from replication.explore.tiny_log import Interned, shown
from replication.explore.truncation_steps import NOBODY, Control, Order, Replica, TruncationSteps
from replication.rules.switches import CURRENT, Rules

_REPLICA_BITS: Final = 16
_REPLICA_MASK: Final = (1 << _REPLICA_BITS) - 1
_CONTROL_BITS: Final = 24


@attrs.frozen(kw_only=True)
class TruncationScope:
    """Bound the model; leader epochs run from 0 to `epoch_max`."""

    replicas: int = 3
    log_size: int = 2
    records: int = 2
    epoch_max: int = 2
    unclean_election: bool = False

    def __attrs_post_init__(self) -> None:
        check_bounds(self, replicas=(2, 5), log_size=(1, 5), records=(1, 5), epoch_max=(0, 7))


class TruncationModel:
    """Model truncation under one release's rules; a state packs the replicas' numbers and the controller's."""

    def __init__(self, scope: TruncationScope, rules: Rules = CURRENT) -> None:
        self.scope = scope
        self._ids = tuple(range(scope.replicas))
        self._pairs = tuple((one, other) for one in self._ids for other in self._ids if one != other)
        self._steps = TruncationSteps(rules, self._ids)
        self._replicas: Interned[Replica] = Interned(_REPLICA_BITS)
        self._orders: Interned[tuple[Order, ...]] = Interned(_CONTROL_BITS)
        self._controls: Interned[Control] = Interned(_CONTROL_BITS)
        self._shift = _REPLICA_BITS * scope.replicas
        self._places = tuple(_REPLICA_BITS * broker for broker in self._ids)
        # For each order of the brokers, the numbers of the replicas and of the controllers after renaming.
        self._renamings: list[tuple[tuple[int, ...], list[int], list[int]]] = [
            (order, [], []) for order in permutations(self._ids)
        ]
        self._controller_steps = cache(self._find_controller_steps)
        self._led = cache(self._find_led)
        self._followed = cache(self._find_followed)
        self._fetched = cache(self._find_fetched)
        self._isr_changes = cache(self._find_isr_changes)
        self._raised = cache(self._find_raised)
        self._agree = cache(self._find_agreement)

    def initial(self) -> int:
        """Return the state of empty logs, no leader, and every replica in sync."""
        replica = self._replicas.number(Replica((), 0, NOBODY, -1, ()))
        control = self._controls.number(Control((), self._ids, 0))
        return sum(replica << _REPLICA_BITS * broker for broker in self._ids) + (control << self._shift)

    def steps(self, state: int) -> list[tuple[str, int]]:
        """Return every step from a state: a description of the step, and the next state."""
        shift = self._shift
        control = state >> shift
        numbers = [state >> _REPLICA_BITS * broker & _REPLICA_MASK for broker in self._ids]
        found = [(words, state + (after - control << shift)) for words, after in self._controller_steps(control)]
        for broker, number in enumerate(numbers):
            place = _REPLICA_BITS * broker
            for words, after in self._leader_steps(broker, number, control):
                found.append((words, state + (after - number << place)))
            if self._replicas.values[number].leader == broker:
                found.extend(self._written(state, broker, number, control))
                raised = self._raised_number(broker, numbers)
                if raised != number:
                    found.append((f"{broker} raises its high watermark by one", state + (raised - number << place)))
        for one, other in self._pairs:
            found.extend(self._pair_steps(state, one, other, numbers, control))
        return found

    def renamed(self, state: int) -> tuple[int, int]:
        """Return the smallest of the states that differ in the brokers' names alone, and their number."""
        control = state >> self._shift
        numbers = [state >> place & _REPLICA_MASK for place in self._places]
        names = []
        for order, replicas, controls in self._renamings:
            while len(replicas) < len(self._replicas.values):
                replicas.append(self._replicas.number(_replica_renamed(self._replicas.values[len(replicas)], order)))
            while len(controls) < len(self._controls.values):
                controls.append(self._controls.number(_control_renamed(self._controls.values[len(controls)], order)))
            name = controls[control] << self._shift
            for place, broker in zip(self._places, order, strict=True):
                name += replicas[numbers[broker]] << place
            names.append(name)
        return min(names), len(set(names))

    def broken(self, state: int) -> str | None:
        """Return how a state violates StrongISR, None if it does not."""
        replicas = self._replicas.values
        numbers = [state >> _REPLICA_BITS * broker & _REPLICA_MASK for broker in self._ids]
        for broker, number in enumerate(numbers):
            replica = replicas[number]
            if replica.leader != broker or not replica.high_watermark:
                continue
            for member in self._controls.values[state >> self._shift].isr:
                if not self._agree(number, numbers[member]):
                    return (
                        f"StrongISR: {broker} leads in epoch {replica.epoch} and has committed up to "
                        f"{replica.high_watermark}, but {member}, in the ISR, does not hold the same"
                    )
        return None

    def _find_agreement(self, leader: int, member: int) -> bool:
        led, end = self._replicas.values[leader], self._replicas.values[leader].high_watermark
        return self._replicas.values[member].log[:end] == led.log[:end]

    def state_text(self, state: int) -> str:
        """Return a state on one line."""
        control = self._controls.values[state >> self._shift]
        parts = []
        for broker in self._ids:
            replica = self._replicas.values[state >> _REPLICA_BITS * broker & _REPLICA_MASK]
            parts.append(f"{broker}: [{shown(replica.log)}] committed {replica.high_watermark} epoch {replica.epoch}")
        return "; ".join([*parts, f"ISR {','.join(map(str, control.isr))}"])

    def _find_controller_steps(self, control: int) -> list[tuple[str, int]]:
        found = self._steps.ordered(
            self._controls.values[control], self.scope.epoch_max, unclean=self.scope.unclean_election
        )
        return [(words, self._controls.number(after)) for words, after in found]

    def _leader_steps(self, broker: int, number: int, control: int) -> list[tuple[str, int]]:
        return self._led(broker, number, self._orders.number(self._controls.values[control].orders))

    def _find_led(self, broker: int, number: int, orders: int) -> list[tuple[str, int]]:
        found = self._steps.led(broker, self._replicas.values[number], self._orders.values[orders])
        return [(words, self._replicas.number(after)) for words, after in found]

    def _written(self, state: int, broker: int, number: int, control: int) -> list[tuple[str, int]]:
        replica, known = self._replicas.values[number], self._controls.values[control]
        if len(replica.log) >= self.scope.log_size or known.next_record >= self.scope.records:
            return []
        words, longer = self._steps.written(broker, replica, known.next_record)
        after = self._controls.number(known._replace(next_record=known.next_record + 1))
        place = _REPLICA_BITS * broker
        change = (self._replicas.number(longer) - number << place) + (after - control << self._shift)
        return [(words, state + change)]

    def _raised_number(self, broker: int, numbers: list[int]) -> int:
        number = numbers[broker]
        replica = self._replicas.values[number]
        if replica.high_watermark >= len(replica.log):
            return number
        return self._raised(broker, *numbers)

    def _find_raised(self, broker: int, *numbers: int) -> int:
        replica = self._replicas.values[numbers[broker]]
        others = {other: self._replicas.values[numbers[other]] for other in self._ids if other != broker}
        may_raise = self._steps.may_raise(broker, replica, others)
        return self._replicas.number(replica._replace(high_watermark=replica.high_watermark + may_raise))

    def _pair_steps(self, state: int, one: int, other: int, numbers: list[int], control: int) -> list[tuple[str, int]]:
        """Return the steps of replica `one` with `other`: follow it, fetch from it, or as leader remove or add it."""
        replicas = self._replicas.values
        number, number_of_other, place = numbers[one], numbers[other], _REPLICA_BITS * one
        replica = replicas[number]
        found: list[tuple[str, int]] = []
        orders = self._controls.values[control].orders
        if replica.epoch < len(orders) - 1:
            known = self._followed(one, number, other, number_of_other, self._orders.number(orders))
            found.extend([(words, state + (after - number << place)) for words, after in known])
        if replica.leader == other and replicas[number_of_other].leader == other:
            known = self._fetched(one, number, other, number_of_other)
            found.extend([(words, state + (after - number << place)) for words, after in known])
        if replica.leader == one and orders[-1].leader == one:
            for words, after, agreed in self._isr_changes(one, number, other, number_of_other, control):
                found.append((words, state + (after - number << place) + (agreed - control << self._shift)))
        return found

    def _find_followed(
        self, one: int, number: int, other: int, number_of_other: int, orders: int
    ) -> list[tuple[str, int]]:
        replicas = self._replicas.values
        found = self._steps.followed(
            one, replicas[number], other, replicas[number_of_other], self._orders.values[orders]
        )
        return [(words, self._replicas.number(after)) for words, after in found]

    def _find_fetched(self, one: int, number: int, other: int, number_of_other: int) -> list[tuple[str, int]]:
        replicas = self._replicas.values
        found = self._steps.fetched(one, replicas[number], other, replicas[number_of_other])
        return [(words, self._replicas.number(after)) for words, after in found]

    def _find_isr_changes(
        self, leader: int, number: int, other: int, number_of_other: int, control: int
    ) -> list[tuple[str, int, int]]:
        replicas = self._replicas.values
        found = self._steps.changed_isr(
            leader, replicas[number], other, replicas[number_of_other], self._controls.values[control]
        )
        return [(words, self._replicas.number(led), self._controls.number(agreed)) for words, led, agreed in found]


def _replica_renamed(replica: Replica, order: tuple[int, ...]) -> Replica:
    """Return a replica's state after broker `order[i]` is renamed to i."""
    leader = NOBODY if replica.leader == NOBODY else order.index(replica.leader)
    return replica._replace(leader=leader, isr=_isr_renamed(replica.isr, order))


def _control_renamed(control: Control, order: tuple[int, ...]) -> Control:
    orders = tuple(
        Order(NOBODY if each.leader == NOBODY else order.index(each.leader), _isr_renamed(each.isr, order))
        for each in control.orders
    )
    return Control(orders, _isr_renamed(control.isr, order), control.next_record)


def _isr_renamed(isr: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(order.index(broker) for broker in isr))
