"""Hold the state of a classic group: members, generation, leader and protocol.

Source: org.apache.kafka.coordinator.group.classic ClassicGroup and ClassicGroupMember, 4.0.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.errors import CorruptDataError
from broker.group.classic.messages import (
    GROUP_TRANSITIONS,
    GroupInput,
    GroupState,
    JoinedMember,
    JoinGroupRequest,
    Protocol,
    Ticket,
)
from broker.group.members import (
    GroupRecord,
    InstanceId,
    MemberId,
    StoredMember,
)
from broker.group.offsets import ExpiryRule
from broker.group.protocol import read_topics
from broker.java.string_hash import java_map_order
from broker.machines import step
from broker.units import DurationMs, TimeMs

CONSUMER: Final = "consumer"
"""The protocol type of consumers; the others are Connect's workers and users' own."""


@attrs.define(eq=False)
class Member:
    """Hold the state of one member; `join_ticket` and `sync_ticket` name its unanswered requests."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str
    protocol_type: str
    protocols: tuple[Protocol, ...]
    session_timeout_ms: DurationMs
    rebalance_timeout_ms: DurationMs
    assignment: bytes = b""
    is_new: bool = False
    join_ticket: Ticket | None = None
    sync_ticket: Ticket | None = None

    @classmethod
    def joining(cls, member_id: MemberId, request: JoinGroupRequest) -> Member:
        """Return the new member described by `request`."""
        return cls(
            member_id=member_id,
            instance_id=request.instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            protocol_type=request.protocol_type,
            protocols=request.protocols,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            is_new=True,
            join_ticket=request.ticket,
        )

    @classmethod
    def stored(cls, stored: StoredMember, record: GroupRecord) -> Member:
        """Return the member as the group's record describes it: with only the protocol that the group selected."""
        return cls(
            member_id=stored.member_id,
            instance_id=stored.instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            protocol_type=record.protocol_type,
            protocols=(Protocol(record.protocol_name or "", stored.subscription),),
            session_timeout_ms=stored.session_timeout_ms,
            rebalance_timeout_ms=stored.rebalance_timeout_ms,
            assignment=stored.assignment,
        )

    @property
    def is_alive_without_heartbeat(self) -> bool:
        """Return whether the member waits for the coordinator and so needs no heartbeat; a first join is bounded."""
        return not self.is_new and (self.join_ticket is not None or self.sync_ticket is not None)

    def take_over(self, other: Member | JoinGroupRequest) -> None:
        """Copy the protocols and timeouts of `other`, which a JoinGroup request can change, and wait for its answer."""
        self.protocols = other.protocols
        self.session_timeout_ms = other.session_timeout_ms
        self.rebalance_timeout_ms = other.rebalance_timeout_ms
        self.join_ticket = other.ticket if isinstance(other, JoinGroupRequest) else None

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return the member's metadata for the assignor called `protocol_name`."""
        return next((protocol.metadata for protocol in self.protocols if protocol.name == protocol_name), b"")


@attrs.define(eq=False)
class ClassicGroup:
    """Hold one classic group; keep members in the order in which they joined."""

    group_id: str
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.DEAD
    state_time_ms: TimeMs = attrs.field(default=TimeMs(0))
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: MemberId | None = None
    members: dict[MemberId, Member] = attrs.field(factory=dict)
    static_members: dict[InstanceId, MemberId] = attrs.field(factory=dict)
    pending_joins: set[MemberId] = attrs.field(factory=set)
    pending_syncs: set[MemberId] = attrs.field(factory=set)
    new_member_added: bool = False
    subscribed_topics: frozenset[str] | None = None
    """The topics to which the members of the present generation subscribe; None if they exchange something else."""

    @classmethod
    def of_record(cls, record: GroupRecord) -> ClassicGroup:
        """Return the group that a coordinator reads from a group record: stable, or empty without members."""
        group = cls(
            record.group_id,
            state=GroupState.STABLE if record.members else GroupState.EMPTY,
            state_time_ms=TimeMs(record.state_time_ms),
            generation=record.generation,
            protocol_type=record.protocol_type or None,
            protocol_name=record.protocol_name,
            leader_id=record.leader_id,
        )
        for stored in record.members:
            group.add(Member.stored(stored, record))
        group.read_subscriptions()
        return group

    def move(self, event: GroupInput, now_ms: TimeMs) -> None:
        """Move to the next state; raise UsageError if the transition table has no row."""
        following = step(GROUP_TRANSITIONS, self.state, event, what=f"group {self.group_id!r}")
        self.previous_state, self.state, self.state_time_ms = self.state, following, now_ms

    def can_rebalance(self) -> bool:
        """Return whether a rebalance may begin now."""
        return (self.state, GroupInput.REBALANCE) in GROUP_TRANSITIONS

    def ordered(self) -> list[Member]:
        """Return the members in the order in which a Java HashMap of their ids iterates."""
        return [self.members[MemberId(key)] for key in java_map_order(self.members) if key is not None]

    @property
    def awaiting_join_count(self) -> int:
        """Return the number of members that wait for a JoinGroup response."""
        return sum(member.join_ticket is not None for member in self.members.values())

    @property
    def have_all_joined(self) -> bool:
        """Return whether every member, and every pending member id, has joined."""
        return not self.pending_joins and self.awaiting_join_count == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> DurationMs:
        """Return the largest rebalance timeout of all members; 0 without members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=DurationMs(0))

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Return whether a member with these protocols can join beside the present members."""
        names = {protocol.name for protocol in protocols}
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and names)
        return self.protocol_type == protocol_type and bool(names & self._common_protocols())

    def select_protocol(self) -> str:
        """Return the protocol with most votes; each member votes for its first protocol that all members support."""
        assert self.members
        common = self._common_protocols()
        votes = Counter(
            next(protocol.name for protocol in member.protocols if protocol.name in common) for member in self.ordered()
        )
        # Of equals the first, in the order of a hash map of the names voted for.
        return str(max(java_map_order(votes), key=lambda name: votes[str(name)]))

    def _common_protocols(self) -> set[str]:
        supported = Counter(name for member in self.members.values() for name in {p.name for p in member.protocols})
        return {name for name, count in supported.items() if count == len(self.members)}

    def read_subscriptions(self) -> None:
        """Read the topics of the members, as a generation begins."""
        try:
            found = [read_topics(member.metadata(self.protocol_name)) for member in self.members.values()]
        except CorruptDataError:
            self.subscribed_topics = None
        else:
            self.subscribed_topics = frozenset(topic for topics in found for topic in topics)

    def add(self, member: Member) -> None:
        """Add a member; the first member becomes the leader and sets the protocol type."""
        assert member.member_id not in self.members
        assert member.instance_id not in self.static_members
        if not self.members:
            self.protocol_type = member.protocol_type
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.members[member.member_id] = member
        self.pending_joins.discard(member.member_id)
        if self.leader_id is None:
            self.leader_id = member.member_id

    def remove(self, member_id: MemberId) -> None:
        """Remove a member or a pending member id; choose another leader if the leader left."""
        member = self.members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            del self.static_members[member.instance_id]
        if self.leader_id == member_id:
            self.leader_id = next((other.member_id for other in self.ordered()), None)
        self.pending_joins.discard(member_id)

    def replace(self, instance_id: InstanceId, new_id: MemberId) -> Member:
        """Replace the member id of the restarted static member `instance_id`; return the new member."""
        old_id = self.static_members[instance_id]
        member = attrs.evolve(self.members.pop(old_id), member_id=new_id, join_ticket=None, sync_ticket=None)
        self.members[new_id] = member
        self.static_members[instance_id] = new_id
        if self.leader_id == old_id:
            self.leader_id = new_id
        return member

    def elect_joined_leader(self) -> bool:
        """Elect a joined member as leader if the present leader has not joined; return False if no member has."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].join_ticket is None:
            joined = next((member for member in self.ordered() if member.join_ticket is not None), None)
            if joined is None:
                return False
            self.leader_id = joined.member_id
        return True

    def member_error(self, member_id: MemberId, instance_id: InstanceId | None) -> ErrorCode:
        """Return the error for a request of this member: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, or NONE."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def commit_error(
        self, member_id: MemberId, instance_id: InstanceId | None, generation: int, *, in_transaction: bool = False
    ) -> ErrorCode:
        """Return the error of an offset commit; NONE when the commit is accepted.

        A negative generation is a consumer that uses the group's offsets without being in it.
        """
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if generation < 0 and self.state is GroupState.EMPTY:
            return ErrorCode.NONE
        if generation >= 0 or member_id or instance_id is not None:
            error = self.member_error(member_id, instance_id)
            if error is not ErrorCode.NONE:
                return error
            if generation != self.generation:
                return ErrorCode.ILLEGAL_GENERATION
        elif not in_transaction:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not in_transaction and self.state is GroupState.COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def expiry_rule(self, subscribed: frozenset[str] | None) -> ExpiryRule | None:
        """Return the rule by which the group's committed offsets expire now; None if they do not expire.

        `subscribed` are the topics that its members read, None if unknown. A group that no member was ever
        in lets each offset age from its commit.
        """
        if self.protocol_type is None:
            return ExpiryRule()
        if self.state is GroupState.EMPTY:
            return ExpiryRule(since_ms=self.state_time_ms)
        if self.state is GroupState.STABLE and self.protocol_type == CONSUMER and subscribed is not None:
            return ExpiryRule(kept_topics=subscribed)
        return None

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """Return the members and their metadata, as the leader's JoinGroup response lists them."""
        return tuple(
            JoinedMember(member.member_id, member.instance_id, member.metadata(self.protocol_name))
            for member in self.ordered()
        )

    def stored_members(self, assignments: dict[MemberId, bytes]) -> tuple[StoredMember, ...]:
        """Return the members as the group's record stores them, with these assignments."""
        return tuple(
            StoredMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.session_timeout_ms,
                subscription=member.metadata(self.protocol_name),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in self.ordered()
        )

    def check_invariants(self) -> None:
        """Assert the group's invariants."""
        assert (self.leader_id is None) == (not self.members), (self.leader_id, list(self.members))
        assert self.leader_id is None or self.leader_id in self.members
        assert {m.instance_id: m.member_id for m in self.members.values() if m.instance_id} == self.static_members
        assert not self.pending_joins & self.members.keys()
        assert self.state is not GroupState.EMPTY or not self.members
        assert self.state is not GroupState.STABLE or all(m.sync_ticket is None for m in self.members.values())
