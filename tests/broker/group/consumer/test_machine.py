"""Coordinator of a consumer group against its reference: heartbeats of every kind, and the records of each step.

Members own what they were answered, give back some of it late, and now and then send a wrong epoch, id or instance.
After each step its records are applied to the group before, and to a group that was read from all records so far; both
have to be the group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from broker.config.setting import Scope
from broker.config.settings import Settings
from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.assignors import Subscriber
from broker.group.consumer import (
    ConsumerCoordinator,
    ConsumerGroup,
    ConsumerGroupHeartbeatRequest,
    GroupContext,
    new_group,
)
from broker.group.consumer.records import ConsumerGroupRecord, TopicIds, applied, changes, read_consumer_key
from broker.group.consumer.target import ConsumerOptions
from broker.group.members import InstanceId, MemberId, random_uuid
from broker.ids import PartitionId, TopicPartition
from broker.releases import NEWEST, Release
from broker.units import DurationMs, TimeMs
from tests.broker.group.consumer.reference import ReferenceConsumerGroup
from tests.support.drawing import DRAWS, Draws

_TOPICS: Final = ("t", "u", "v")
_IDS: Final = TopicIds({topic: topic.encode() * 16 for topic in _TOPICS})
_INSTANCES: Final = (None, None, None, InstanceId("i1"), InstanceId("i2"))
_SPARES_SINCE: Final = Release("4.3")
"""The first release that does not compute every target at once."""
_RELEASES: Final = (NEWEST, NEWEST, NEWEST, Release("4.2"), Release("4.1"), Release("4.0"))


@attrs.frozen
class _Dealer:
    """Deal the partitions of each topic to its subscribers, from another one on for each assignor."""

    name: str
    first: int

    def assign(
        self, members: Sequence[Subscriber], partition_counts: Mapping[str, int]
    ) -> Mapping[MemberId, frozenset[TopicPartition]]:
        """Return the partitions of each member."""
        shares: dict[MemberId, set[TopicPartition]] = {each.member_id: set() for each in members}
        for topic, count in sorted(partition_counts.items()):
            readers = sorted(each.member_id for each in members if topic in each.subscribed_topics)
            for partition in range(count):
                reader = readers[(partition + self.first + len(members)) % len(readers)]
                shares[reader].add(TopicPartition(topic, PartitionId(partition)))
        return {name: frozenset(share) for name, share in shares.items()}


_ASSIGNORS: Final = (_Dealer("one", 0), _Dealer("two", 1), _Dealer("three", 2))


class ConsumerGroupMachine(RuleBasedStateMachine):
    """One group through its heartbeats, beside the reference."""

    @initialize(draws=DRAWS)
    def begin(self, draws: Draws) -> None:
        self._draws = draws
        release, seed = draws.one(_RELEASES), draws.number(0, 10**6)
        self._counts = {topic: draws.number(1, 3) for topic in _TOPICS}
        size_max, session_ms = draws.one((2, 100)), draws.one((45_000, 50_000))
        options = ConsumerOptions(size_max=size_max, session_timeout_ms=DurationMs(session_ms), release=release)
        interval_ms = 1_000 if release >= _SPARES_SINCE else 0
        if draws.is_one_in(2):
            given = {"group.consumer.max.size": size_max, "group.consumer.session.timeout.ms": session_ms}
            if interval_ms:
                interval_ms = given["group.consumer.assignment.interval.ms"] = draws.one((0, 1, 100, 700, 5_000))
            options = ConsumerOptions.of(Settings.of(Scope.BROKER, given, release=release))
        self._context = GroupContext(options=options, assignors=_ASSIGNORS, topics=self._counts)
        group = new_group("g", release)
        self._coordinator = ConsumerCoordinator(group, self._context, SplitMix64(seed))
        self._entropy = SplitMix64(seed)
        self._reference = ReferenceConsumerGroup(
            release=release,
            assignors=_ASSIGNORS,
            counts=self._counts,
            size_max=size_max,
            session_ms=session_ms,
            interval_ms=interval_ms,
        )
        self._new = self._kept = self._read = group
        self._log: list[ConsumerGroupRecord] = []
        self._now_ms = 1_000
        self._owned: dict[str, frozenset[TopicPartition]] = {}

    def _pass(self, *, is_asked_next: bool) -> None:
        """Let time pass; now and then what is due is left to the heartbeat that comes next."""
        self._now_ms += self._draws.one((0, 100, 700, 3_000, 20_000))
        self._reference.pass_to(self._now_ms)
        if not is_asked_next or not self._draws.is_one_in(3):
            self._coordinator.advance(TimeMs(self._now_ms))
            self._compare("time")

    @precondition(lambda self: len(self._log) > 20)
    @rule()
    def move(self) -> None:
        """Let another broker coordinate the group: it knows the group, and waits for all anew."""
        self._coordinator.advance(TimeMs(self._now_ms))
        self._coordinator = ConsumerCoordinator(self._coordinator.group, self._context, self._coordinator.entropy)
        self._coordinator.loaded(TimeMs(self._now_ms))
        self._reference.move_away(self._now_ms)
        self._compare("another broker took over")

    @rule(topic=st.sampled_from(_TOPICS))
    def grow(self, topic: str) -> None:
        self._counts[topic] += 1

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        draws, known = self._draws, self._reference.members
        name = draws.one(["", "", *(f"m{number}" for number in range(3)), *known, *known])
        one = known.get(name)
        instance = (None if one is None or one.instance is None else InstanceId(one.instance)) if one else None
        epoch = one.epoch if one is not None and not draws.is_one_in(12) else 0
        if one is None:
            instance = draws.one(_INSTANCES)
        away = [each for each in known.values() if each.instance is not None and each.epoch == -2]
        back = draws.one(away) if one is None and away and draws.is_one_in(2) else None
        if back is not None:
            instance = InstanceId(str(back.instance))
        if one is not None and draws.is_one_in(8):
            epoch = draws.one((one.former_epoch, one.former_epoch, one.epoch + 1, one.epoch - 1))
        if draws.is_one_in(8):
            epoch = draws.one((-1, -2, -2, -3 if draws.is_one_in(4) else -1))
        if draws.is_one_in(20):
            instance = draws.one((*_INSTANCES, InstanceId("")))
        is_full = epoch == 0 or draws.is_one_in(5)
        owned = self._owned.get(name, frozenset())
        says = frozenset(draws.some(sorted(owned))) if draws.is_one_in(4) else owned
        odd = draws.number(0, 30)
        """Which field a request lacks that should be full, or has too much in."""
        if epoch == 0:
            says = frozenset({TopicPartition("t", PartitionId(0))}) if odd == 2 else frozenset()
        topics = self._topics(one is None) if back is None or draws.is_one_in(4) else back.topics
        return ConsumerGroupHeartbeatRequest(
            member_id=MemberId(name),
            epoch=epoch,
            instance_id=instance,
            client_id=draws.one(("d", "c" * 130)) if draws.is_one_in(9) else "c",
            rack=draws.one((None, None, "r", "" if draws.is_one_in(9) else None)),
            rebalance_timeout_ms=DurationMs(draws.one((8_000, 60_000))) if is_full and odd != 1 else None,
            subscribed_topics=topics if is_full or draws.is_one_in(9) else None,
            assignor=draws.one((None, "one", "two", "three", "none" if draws.is_one_in(9) else None)),
            owned=says if odd != 3 and (is_full or draws.is_one_in(2)) else None,
        )

    def _topics(self, is_new: bool) -> frozenset[str]:
        if not is_new and not self._draws.is_one_in(4):
            return frozenset({"t", "u"})
        return frozenset(self._draws.some((*_TOPICS, "unknown"), 0 if self._draws.is_one_in(9) else 1))

    @rule(draws=DRAWS)
    def beat_again(self, draws: Draws) -> None:
        self.beat(draws)

    @rule(draws=DRAWS)
    def beat_once_more(self, draws: Draws) -> None:
        self.beat(draws)

    @rule(draws=DRAWS)
    def beat(self, draws: Draws) -> None:
        self._draws, reference = draws, self._reference
        self._pass(is_asked_next=True)
        asked = self._request()
        new_id = str(asked.member_id) or random_uuid(self._entropy)
        error = reference.refusal(asked)
        handled = self._coordinator.handle(asked, TimeMs(self._now_ms))
        answer = handled.answer
        assert answer.error is error, asked
        if error is not ErrorCode.NONE:
            assert (answer.member_id, answer.epoch, answer.assignment) == (asked.member_id, asked.epoch, None)
            self._compare(str(asked))
            return
        name = str(asked.member_id) if asked.epoch < 0 else new_id
        epoch, share = reference.beat(asked, name, self._now_ms)
        assert (answer.member_id, answer.epoch, answer.assignment) == (name, epoch, share), asked
        if epoch >= 0:
            assert answer.heartbeat_interval_ms == self._context.options.heartbeat_interval_ms
        if share is not None and not draws.is_one_in(4):
            self._owned[name] = share
        elif name in reference.members and not draws.is_one_in(3):
            self._owned[name] = frozenset(reference.members[name].holds)
        assert handled.group is self._coordinator.group, asked
        self._compare(str(asked))

    @rule(draws=DRAWS)
    def commit(self, draws: Draws) -> None:
        self._draws, reference = draws, self._reference
        name = draws.one(["", "m0", *reference.members])
        one = reference.members.get(name)
        epoch = draws.one((-1, 0, *([one.epoch, one.epoch - 1, one.former_epoch, one.epoch + 1] if one else [])))
        every = [TopicPartition(topic, PartitionId(each)) for topic in ("t", "u") for each in range(2)]
        partitions = list(draws.some(sorted(one.holds) if one and one.holds and draws.is_one_in(2) else every))
        found_error = self._coordinator.group.commit_error(MemberId(name), epoch, partitions)
        assert found_error is reference.commit_refusal(name, epoch, partitions), (name, epoch, partitions)

    def _compare(self, what: str) -> None:
        group, reference = self._coordinator.group, self._reference
        group.check_invariants()
        ours = {
            name: (
                *(each.instance_id, each.client_id, each.rack, each.assignor, each.subscribed_topics),
                *(each.rebalance_timeout_ms, each.state.name, each.epoch, each.previous_epoch),
                *(set(each.assigned), set(each.revoking), dict(each.assignment_epochs)),
            )
            for name, each in group.members.items()
        }
        theirs: dict[Any, Any] = {
            name: (
                *(each.instance, each.client, each.rack, each.assignor, each.topics),
                *(each.patience_ms, each.state, each.epoch, each.former_epoch),
                *(each.holds, each.owes, each.since),
            )
            for name, each in reference.members.items()
        }
        assert ours == theirs, what
        held = (group.epoch, group.target_epoch, dict(group.topics), group.target_ms)
        wanted = (reference.epoch, reference.target_epoch, reference.read, reference.target_ms)
        assert held == wanted, what
        assert {name: set(share) for name, share in group.target.items()} == reference.target, what
        assert group.state.name == reference.state, what
        departed = [(each.member_id, why.value) for each, why in self._coordinator.take_departed()]
        known, reference.departed = reference.departed, []
        assert departed == known, what
        assert self._coordinator.next_ms() == reference.next_ms, what
        self._record(group, what)

    def _record(self, group: ConsumerGroup, what: str) -> None:
        """The records of a step lead to the group."""
        records = changes(self._kept, group, _IDS)
        assert (not records) == (group == self._kept), what
        stepped = self._kept
        for record in records:
            assert read_consumer_key(record.key.to_bytes()) == record.key
            stepped, self._read = applied(stepped, record, _IDS), applied(self._read, record, _IDS)
        self._kept = group
        self._log += records
        assert _of(stepped) == _of(group), what
        assert _of(self._read) == _of(group), what

    @rule(draws=DRAWS)
    def clean(self, draws: Draws) -> None:
        """The log is read the same after records have been cleaned that a later one replaces."""
        last = {record.key: place for place, record in enumerate(self._log)}
        kept_one_in = draws.one((2, 10**6))
        read = self._new
        for place, record in enumerate(self._log):
            if last[record.key] == place or draws.is_one_in(kept_one_in):
                read = applied(read, record, _IDS)
        assert _of(read) == _of(self._kept)


def _of(group: ConsumerGroup) -> tuple[Any, ...]:
    """Return what a record keeps of a group; an empty share is as good as none."""
    target = {name: share for name, share in group.target.items() if share}
    return group.epoch, group.target_epoch, group.target_ms, dict(group.members), target, dict(group.topics)


TestConsumerGroupMachine = ConsumerGroupMachine.TestCase
TestConsumerGroupMachine.settings = settings(max_examples=24, stateful_step_count=40)


@pytest.mark.deep
class TestLongConsumerGroupMachine(ConsumerGroupMachine.TestCase):  # type: ignore[misc, name-defined] # made by Hypothesis.
    settings = settings(max_examples=250, stateful_step_count=60)
