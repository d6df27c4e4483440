"""Our controller, driven through a history of events that Kafka's own controller can be given too.

It resolves what a step names loosely ("the third partition there is", "one epoch too old") against the state at that
step, so that any step can be left out of a history; one that names what does not exist is skipped, on both sides. Each
step gives the message that the controller is sent, and the same step as java/Controllers.java reads it. Operators'
settings, which the role takes for fixed, are laid over it here, with the ELR cleared where Kafka writes a
ClearElrRecord (KIP-966).

Left out: log directories; unregistered brokers; a broker in controlled shutdown that amends its registration, or whose
heartbeat no longer wants it; sessions that end in the same instant; an unclean start of a broker whose ELR a change of
min.insync.replicas has cleared.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch
from broker.registration import SESSION_STATES, BrokerState, Heartbeat
from broker.units import TimeMs
from replication.roles.controller import ControllerRole, Session
from replication.roles.messages import (
    Address,
    AlterPartition,
    AlterPartitionReassignments,
    AlterPartitionReassignmentsResponse,
    AlterPartitionResponse,
    BalanceDue,
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
    CreateTopic,
    DeleteTopic,
    ElectLeaders,
    ElectLeadersResponse,
    Message,
    NodeId,
    PartitionRecord,
    SessionsDue,
)
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.rules.election import Election
from replication.rules.fencing import StopProof
from replication.rules.partition import AlterPartitionRequest, IsrMember, PartitionEpoch, PartitionState
from replication.rules.settings import PartitionSettings
from replication.rules.switches import Rules

Step: TypeAlias = tuple[Any, ...]
"""The name of what happens, and what it is given."""

Request: TypeAlias = list[Any]
"""A step as java/Controllers.java reads it: its letter and what it is given."""

STALE: Final = 1_000_000
"""What is added to a broker epoch to make it another one."""

SESSION_MS: Final = 9_000


class ConfiguredController(ControllerRole):
    """Let operators change what the role takes for fixed: min.insync.replicas and unclean.leader.election.enable."""

    def __init__(self, rules: Rules) -> None:
        super().__init__(RoleSettings(settings=PartitionSettings(rules=rules)))
        self.min_isr: dict[str, int] = {}
        self.unclean: dict[str, bool] = {}

    def settings_of(self, partition: int) -> PartitionSettings:
        """Return the settings of the topic, or of the cluster where the topic has none; "" is the cluster."""
        topic = self.image.topics[partition]
        return attrs.evolve(
            super().settings_of(partition),
            min_isr=self.min_isr.get(topic, self.min_isr.get("", 1)),
            unclean_election=self.unclean.get(topic, self.unclean.get("", False)),
        )

    def session(self, broker: BrokerId) -> Session:
        """Return the session of a registered broker."""
        return self._sessions[broker]

    def clear_elr(self, topic: str) -> set[int]:
        """Clear the ELR of a topic, or of all for "", as ClearElrRecord does; return who was in it."""
        cleared = set[int]()
        for partition, state in sorted(self.image.partitions.items()):
            if topic in ("", self.image.topics[partition]) and (state.elr or state.last_known):
                cleared.update(state.elr)
                epoch = PartitionEpoch(state.partition_epoch + 1)
                self._write(
                    PartitionRecord(partition, attrs.evolve(state, elr=(), last_known=(), partition_epoch=epoch))
                )
        return cleared


class ControllerModel:
    """Our controller in the middle of a history, and the same history as Kafka's controller is given it."""

    def __init__(self, rules: Rules) -> None:
        self.elr = rules.elr
        self.role = ConfiguredController(rules)
        self.steps: list[Request] = []
        self.answers: list[str] = []
        self._now_ms = TimeMs(1_000_000)
        self._ends: list[int] = []
        self._cleared: set[int] = set()
        self._incarnations: dict[int, int] = {}
        self._numbers: dict[str, list[int]] = {}
        self._number_count = 0

    def take(self, step: Step) -> None:
        """Take one step, unless what it names does not exist."""
        name, *arguments = step
        taken = getattr(self, f"_{name}")(*arguments)
        if taken is None:
            return
        request, answer = taken
        self.steps.append(request)
        self._ends.append(len(self.role.log))
        self.answers.append(f"{answer}\n{self._described()}")

    # Brokers.

    def _register(self, broker: int, is_new: bool, is_clean: bool) -> tuple[Request, str] | None:
        known = self.role.registrations.get(BrokerId(broker))
        if not is_new and known is not None and known.state is BrokerState.CONTROLLED_SHUTDOWN:
            return None
        incarnation = self._incarnations.get(broker, 0) + (is_new or broker not in self._incarnations)
        status = self.role.image.brokers.get(BrokerId(broker))
        # Kafka's index of the ELR keeps the members that a ClearElrRecord took out, and an unclean start reads it.
        is_clean = is_clean or broker in self._cleared
        proof = StopProof(status.epoch if is_clean and status is not None else None)
        (response,) = self._say(BrokerRegistration(BrokerId(broker), str(incarnation), proof), broker)
        assert isinstance(response, BrokerRegistrationResponse)
        if response.epoch is not None:
            self._incarnations[broker] = incarnation
        code = ErrorCode.NONE if response.epoch is not None else ErrorCode.DUPLICATE_BROKER_REGISTRATION
        return ["R", broker, incarnation, is_clean], str(int(code))

    def _beat(
        self, broker: int, is_current: bool, back: int, wants_fence: bool, wants_stop: bool
    ) -> tuple[Request, str] | None:
        if BrokerId(broker) not in self.role.registrations or not self._ends:
            return None
        # No two are heard of at the same time, so that their sessions do not end together: which of two Kafka fences
        # first is up to its hash map.
        self._now_ms = TimeMs(self._now_ms + 1)
        self._say(SessionsDue())
        registration = self.role.registrations[BrokerId(broker)]
        if self.role.image.brokers[BrokerId(broker)].shutting_down:
            wants_fence, wants_stop = False, True
        step = -1 if back < 0 else max(0, len(self._ends) - 1 - back)
        registered = self.role.session(BrokerId(broker)).registered_offset
        read = registered - 1 if step < 0 else self._ends[step] - 1
        beat = Heartbeat(metadata_offset=read, want_fence=wants_fence, want_shutdown=wants_stop)
        epoch = BrokerEpoch(registration.epoch + (0 if is_current else STALE))
        responses = self._say(BrokerHeartbeat(BrokerId(broker), epoch, beat), broker)
        answer = "nothing"
        if responses:
            (response,) = responses
            assert isinstance(response, BrokerHeartbeatResponse)
            answer = str(int(response.error))
            answer += _STATES[response.state] if response.error is ErrorCode.NONE else ""
        return ["H", broker, is_current, step, wants_fence, wants_stop], answer

    def _tick(self, elapsed_ms: int) -> tuple[Request, str]:
        end_ms, pauses = self._now_ms + elapsed_ms, []
        while self._now_ms < end_ms:
            due = [one for one in self._session_ends_ms() if one <= end_ms]
            then_ms = due[0] if due else end_ms
            pauses.append(max(0, then_ms - self._now_ms))
            self._now_ms = TimeMs(max(self._now_ms, then_ms))
            self._say(SessionsDue())
        return ["T", pauses], "0"

    def _session_ends_ms(self) -> list[int]:
        """Return when each session that has not ended yet ends, in order."""
        heard_ms = (self.role.session(broker).heard_at_ms for broker in self.role.registrations)
        return sorted(heard + SESSION_MS + 1 for heard in heard_ms if heard is not None)

    def _failover(self) -> tuple[Request, str]:
        self.role.start(self._now_ms, Outbox())
        for broker, registration in sorted(self.role.registrations.items()):
            if registration.state in SESSION_STATES:
                # Each is heard of once more, at another time, so that their sessions do not end together.
                self._now_ms = TimeMs(self._now_ms + 1)
                self.role.session(broker).heard_at_ms = self._now_ms
        return ["Z"], "0"

    # Partitions.

    def _alter(
        self,
        place: int,
        sender: int,
        is_current: bool,
        ahead: tuple[int, int],
        members: tuple[int, ...],
        epochs: tuple[int, ...],
        recovering: bool,
    ) -> tuple[Request, str] | None:
        """`sender` and `members` are places: 0 for the leader, then the replicas, then a broker that is none."""
        found = self._partition(place)
        if found is None:
            return None
        topic, number, state = found
        candidates = (state.leader if state.has_leader else state.replicas[0], *state.replicas, self._stranger(state))
        broker = candidates[sender % len(candidates)]
        isr = [candidates[member % len(candidates)] for member in dict.fromkeys(members)]
        modes = [epochs[member % len(epochs)] for member in range(len(isr))]
        leader_epoch, partition_epoch = state.leader_epoch + ahead[0], state.partition_epoch + ahead[1]
        request = AlterPartitionRequest(
            leader=broker,
            leader_epoch=LeaderEpoch(leader_epoch),
            partition_epoch=PartitionEpoch(partition_epoch),
            isr=tuple(IsrMember(member, self._epoch(member, mode)) for member, mode in zip(isr, modes, strict=True)),
            recovering=recovering,
        )
        epoch = BrokerEpoch(self._epoch(broker, 0) + (0 if is_current else STALE))
        (response,) = self._say(AlterPartition(self._numbers[topic][number], 0, request, epoch), broker)
        assert isinstance(response, AlterPartitionResponse)
        step = ["A", broker, is_current, topic, number, (leader_epoch, partition_epoch), isr, modes, recovering]
        return step, str(int(response.altered.error))

    def _elect(self, place: int, is_preferred: bool) -> tuple[Request, str] | None:
        found = self._partition(place)
        if found is None:
            return None
        topic, number, _ = found
        election = Election.PREFERRED if is_preferred else Election.UNCLEAN
        (response,) = self._say(ElectLeaders(self._numbers[topic][number], election))
        assert isinstance(response, ElectLeadersResponse)
        return ["E", topic, number, int(not is_preferred)], str(int(response.error))

    def _reassign(self, place: int, replicas: tuple[int, ...]) -> tuple[Request, str] | None:
        found = self._partition(place)
        if found is None:
            return None
        topic, number, _ = found
        (response,) = self._say(AlterPartitionReassignments(self._numbers[topic][number], _ids(replicas)))
        assert isinstance(response, AlterPartitionReassignmentsResponse)
        return ["M", topic, number, replicas], str(int(response.error))

    def _balance(self) -> tuple[Request, str]:
        self._say(BalanceDue())
        return ["B"], "0"

    # Topics.

    def _create(self, topic: str, replicas: tuple[tuple[int, ...], ...]) -> tuple[Request, str] | None:
        if topic in self._numbers or not self._are_registered(replicas):
            return None
        return ["C", topic, replicas], self._add(topic, replicas)

    def _grow(self, topic: str, replicas: tuple[tuple[int, ...], ...]) -> tuple[Request, str] | None:
        if topic not in self._numbers or not self._are_registered(replicas):
            return None
        counts = {len(self.role.image.partitions[number].replicas) for number in self._numbers[topic]}
        # Kafka compares with the partition that its hash map lists first.
        replicas = tuple(one for one in replicas if {len(one)} == counts)
        if not replicas:
            return None
        step = ["G", topic, len(self._numbers[topic]) + len(replicas), replicas]
        return step, self._add(topic, replicas)

    def _add(self, topic: str, replicas: tuple[tuple[int, ...], ...]) -> str:
        active = [broker for broker, status in self.role.image.brokers.items() if status.is_active]
        if not all(set(one).intersection(active) for one in replicas):
            return str(int(ErrorCode.INVALID_REPLICA_ASSIGNMENT))
        for one in replicas:
            self._say(CreateTopic(self._number_count, _ids(one), topic))
            self._numbers.setdefault(topic, []).append(self._number_count)
            self._number_count += 1
        return "0"

    def _delete(self, topic: str) -> tuple[Request, str] | None:
        if topic not in self._numbers:
            return None
        for number in self._numbers.pop(topic):
            self._say(DeleteTopic(number))
        self.role.min_isr.pop(topic, None)
        self.role.unclean.pop(topic, None)
        return ["D", topic], "0"

    def _min_isr(self, topic: str, value: int) -> tuple[Request, str] | None:
        """0 takes the setting away."""
        if topic and topic not in self._numbers:
            return None
        step = ["K", topic, "min.insync.replicas", str(value) if value else ""]
        if not topic and not value and self.elr:
            return step, str(int(ErrorCode.INVALID_CONFIG))
        is_written = not topic or self.role.min_isr.get(topic, 0) != value
        self.role.min_isr.pop(topic, None)
        if value:
            self.role.min_isr[topic] = value
        if is_written and self.elr:
            self._cleared.update(self.role.clear_elr(topic))
        return step, "0"

    def _unclean(self, topic: str, value: bool | None) -> tuple[Request, str] | None:
        """None takes the setting away."""
        if topic and topic not in self._numbers:
            return None
        self.role.unclean.pop(topic, None)
        if value is not None:
            self.role.unclean[topic] = value
        text = "" if value is None else str(value).lower()
        return ["K", topic, "unclean.leader.election.enable", text], "0"

    # What steps name, and what is compared.

    def _say(self, message: Message, broker: int = -1) -> list[Message]:
        out = Outbox()
        sender = Address(NodeId(broker)) if broker >= 0 else Address(NodeId(0))
        self.role.handle(message, sender, self._now_ms, out)
        return [sent for _, sent in out.sent]

    def _partition(self, place: int) -> tuple[str, int, PartitionState] | None:
        known = [(topic, number) for topic in sorted(self._numbers) for number in range(len(self._numbers[topic]))]
        if not known:
            return None
        topic, number = known[place % len(known)]
        return topic, number, self.role.image.partitions[self._numbers[topic][number]]

    def _stranger(self, state: PartitionState) -> BrokerId:
        others = [broker for broker in sorted(self.role.image.brokers) if broker not in state.replicas]
        return others[0] if others else BrokerId(99)

    def _epoch(self, broker: BrokerId, mode: int) -> BrokerEpoch:
        registration = self.role.registrations.get(broker)
        epoch = 0 if registration is None else registration.epoch
        return BrokerEpoch((epoch, -1, epoch + STALE)[mode])

    def _are_registered(self, replicas: tuple[tuple[int, ...], ...]) -> bool:
        return all(BrokerId(broker) in self.role.image.brokers for one in replicas for broker in one)

    def _described(self) -> str:
        brokers = (
            f"{broker}{'F' if status.fenced else 'U'}{'S' if status.shutting_down else ''} "
            for broker, status in sorted(self.role.image.brokers.items())
        )
        partitions = (
            f"\n{topic}-{number}{_state(self.role.image.partitions[known])}"
            for topic, numbers in sorted(self._numbers.items())
            for number, known in enumerate(numbers)
        )
        return "".join((*brokers, *partitions))


_STATES: Final = {
    BrokerState.FENCED: "F",
    BrokerState.UNFENCED: "U",
    BrokerState.CONTROLLED_SHUTDOWN: "US",
    BrokerState.SHUTDOWN_NOW: "F!",
}


def _state(state: PartitionState) -> str:
    lists = (state.elr, state.last_known, state.adding, state.removing)
    epochs = f" {state.leader} {state.leader_epoch} {state.partition_epoch}"
    recovering = " recovering" if state.recovering else ""
    return _list(state.replicas) + _list(state.isr) + epochs + "".join(map(_list, lists)) + recovering


def _list(brokers: tuple[BrokerId, ...]) -> str:
    return f" [{','.join(map(str, brokers))}]"


def _ids(brokers: tuple[int, ...]) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, brokers))
