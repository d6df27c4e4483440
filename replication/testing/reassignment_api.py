"""Serve AlterPartitionReassignments, ListPartitionReassignments and ElectLeaders: orders to the controller.

Each partition is an order of its own, and the response waits for the last. An order is answered once this broker sees
what it changed, so that the tools' next question shows it.

Source: Kafka metadata ReplicationControlManager.alterPartitionReassignments, listPartitionReassignments and
electLeaders; KIP-455, KIP-460; 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from replication.roles.messages import AlterPartitionReassignments, ElectLeaders
from replication.roles.outbox import Outbox
from replication.rules.election import Election
from replication.rules.partition import PartitionState
from replication.testing.gateway import Call, Gateway, Values

_ELECTIONS: Final = {0: Election.PREFERRED, 1: Election.UNCLEAN}
Place = tuple[str, int]


@attrs.define
class Orders:
    """Gather the errors of orders for partitions, and answer when all are known or the time is over."""

    finish: Callable[[dict[Place, ErrorCode], Outbox], None]
    places: tuple[Place, ...]
    errors: dict[Place, ErrorCode] = attrs.field(factory=dict)
    seen: dict[Place, Callable[[], bool]] = attrs.field(factory=dict)

    def note(self, place: Place, error: ErrorCode) -> None:
        """Take an order's error."""
        self.errors[place] = error

    def noting(self, place: Place) -> Callable[[ErrorCode, Outbox], None]:
        """Return what takes the error of the order for a partition."""
        return lambda error, out: self.note(place, error)

    def is_done(self, out: Outbox) -> bool:
        """Answer if every order has been, and this broker sees what those that succeeded did."""
        if len(self.errors) < len(self.places):
            return False
        if any(error is ErrorCode.NONE and not self._is_seen(place) for place, error in self.errors.items()):
            return False
        self.finish(self.errors, out)
        return True

    def expire(self, out: Outbox) -> None:
        """Answer REQUEST_TIMED_OUT for the orders that have no response yet."""
        self.finish({place: self.errors.get(place, ErrorCode.REQUEST_TIMED_OUT) for place in self.places}, out)

    def _is_seen(self, place: Place) -> bool:
        return place not in self.seen or self.seen[place]()


def grouped(errors: dict[Place, ErrorCode], index_name: str) -> dict[str, list[Values]]:
    """Return the errors by topic, in order, each with its partition's index under `index_name`."""
    topics: dict[str, list[Values]] = {}
    for (topic, index), error in errors.items():
        topics.setdefault(topic, []).append({index_name: index, "error_code": error})
    return topics


def _state(gateway: Gateway, place: Place) -> PartitionState | None:
    number = gateway.topics.number_of(*place)
    return None if number is None else gateway.broker.image.partitions.get(number)


def alter_partition_reassignments(call: Call, out: Outbox) -> None:
    """Move partitions to other replicas, or cancel their moves; each is refused by itself."""
    body, gateway = call.request.body, call.gateway
    asked = {(topic.name, each.partition_index): each.replicas for topic in body.topics for each in topic.partitions}
    may_change_factor = getattr(body, "allow_replication_factor_change", True)

    def finish(errors: dict[Place, ErrorCode], out: Outbox) -> None:
        topics = grouped({place: errors[place] for place in asked}, "partition_index")
        listed = [{"name": name, "partitions": values} for name, values in topics.items()]
        call.answer({"responses": listed, "allow_replication_factor_change": may_change_factor}, out)

    orders = Orders(finish, tuple(asked))
    for place, replicas in asked.items():
        error = _refusal(_state(gateway, place), replicas, may_change_factor=may_change_factor)
        if error is not ErrorCode.NONE:
            orders.note(place, error)
            continue
        number = gateway.topics.number_of(*place)
        assert number is not None, place
        target = tuple(map(BrokerId, replicas or ()))
        orders.seen[place] = _moves(gateway, place, target)
        order = AlterPartitionReassignments(number, target)
        gateway.order(order, number, orders.noting(place), out)
    call.gateway.wait(orders, call.timeout_ms, out)


def _refusal(state: PartitionState | None, replicas: Any, *, may_change_factor: bool) -> ErrorCode:
    """Return the error of an order that the controller need not be asked about."""
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if replicas is None:
        return ErrorCode.NONE
    if not replicas:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    settled = len(state.replicas) - len(state.adding)
    if not may_change_factor and len(replicas) != settled:
        return ErrorCode.INVALID_REPLICATION_FACTOR
    return ErrorCode.NONE


def _moves(gateway: Gateway, place: Place, target: tuple[BrokerId, ...]) -> Callable[[], bool]:
    """Return whether this broker sees that a move has begun, or was cancelled for an empty target."""

    def is_seen() -> bool:
        state = _state(gateway, place)
        if state is None:
            return True
        return set(target) <= set(state.replicas) if target else not state.is_reassigning

    return is_seen


def list_partition_reassignments(call: Call, out: Outbox) -> None:
    """List the moves under way, of the partitions asked for or of all."""
    body, gateway = call.request.body, call.gateway
    if body.topics is None:
        places = all_places(gateway.topics)
    else:
        places = [(each.name, index) for each in body.topics for index in each.partition_indexes]
    topics: dict[str, list[Values]] = {}
    for name, index in places:
        state = _state(gateway, (name, index))
        if state is not None and state.is_reassigning:
            values = {
                "partition_index": index,
                "replicas": state.replicas,
                "adding_replicas": state.adding,
                "removing_replicas": state.removing,
            }
            topics.setdefault(name, []).append(values)
    call.answer({"topics": [{"name": name, "partitions": values} for name, values in topics.items()]}, out)


def elect_leaders(call: Call, out: Outbox) -> None:
    """Elect the preferred leaders, or leaders out of sync, of the partitions asked for or of all that need one."""
    body, gateway = call.request.body, call.gateway
    is_all = body.topic_partitions is None
    if is_all:
        places = all_places(gateway.topics)
    else:
        places = [(each.topic, index) for each in body.topic_partitions for index in each.partitions]
    election = _ELECTIONS.get(getattr(body, "election_type", 0))

    def finish(errors: dict[Place, ErrorCode], out: Outbox) -> None:
        shown = {place: errors[place] for place in places}
        if is_all:
            shown = {place: error for place, error in shown.items() if error is not ErrorCode.ELECTION_NOT_NEEDED}
        topics = grouped(shown, "partition_id")
        results = [{"topic": name, "partition_result": values} for name, values in topics.items()]
        call.answer({"replica_election_results": results}, out)

    if election is None:
        call.answer({"error_code": ErrorCode.INVALID_REQUEST}, out)
        return
    orders = Orders(finish, tuple(dict.fromkeys(places)))
    _order_elections(gateway, orders, election, out)
    call.gateway.wait(orders, call.timeout_ms, out)


def _order_elections(gateway: Gateway, orders: Orders, election: Election, out: Outbox) -> None:
    for place in orders.places:
        state, number = _state(gateway, place), gateway.topics.number_of(*place)
        if state is None or number is None:
            orders.note(place, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            continue
        orders.seen[place] = _leads_anew(gateway, place, state)
        order = ElectLeaders(number, election)
        gateway.order(order, number, orders.noting(place), out)


def _leads_anew(gateway: Gateway, place: Place, before: PartitionState) -> Callable[[], bool]:
    def is_seen() -> bool:
        state = _state(gateway, place)
        return state is None or state.leader_epoch > before.leader_epoch

    return is_seen


def all_places(topics: Iterable[Any]) -> list[Place]:
    """Return the partitions of topics, in order."""
    return [(topic.name, index) for topic in topics for index in range(len(topic.numbers))]
