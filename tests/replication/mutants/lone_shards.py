"""Let two brokers coordinate groups in turn, and compare what they answer with the logs of `__consumer_offsets`.

What it decides: requests, which appends are refused, who leads, and the time, from a seed.

Constraints: an offset that is shown is the last one below the high watermark, by a reader of the log of its own; an
answer to a commit comes with the result of its append; who does not lead, or still reads, refuses.

Source: CoordinatorRuntime and GroupCoordinatorService 4.3.1, as facts: NOT_COORDINATOR and
COORDINATOR_LOAD_IN_PROGRESS, but heartbeats of classic members succeed during the load; what waits at the end of a
leadership is answered NOT_COORDINATOR; stable offsets (KIP-447) within offsets.commit.timeout.ms, 5 s.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

from broker.error_codes import ErrorCode
from broker.group.classic import HeartbeatRequest, Ticket
from broker.group.consumer import ConsumerGroupHeartbeatRequest
from broker.group.members import MemberId
from broker.group.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
)
from broker.group.offsets import Commit
from broker.ids import NO_LEADER, BrokerId, Offset
from replication.groups.client.messages import TopicMetadataRequest, TopicMetadataResponse
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.offsets_world import WALL_MS
from tests.replication.mutants.shard_brokers import EVERY, HOME, LOAD_MS, LOOK_MS, WAIT_MS
from tests.replication.mutants.shard_members import REFUSALS, ShardMembers

STEP_COUNT: Final = 140
_STREAM: Final = 41
_REFUSED: Final = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


def shards_noticed(seed: int) -> str:
    """Return what coordinators answer or store that they must not, "" if nothing."""
    return _Life(Draws(seed, _STREAM)).run()


class _Life(ShardMembers):
    """Run two brokers, their logs and their clients."""

    def run(self) -> str:
        """Run a storm, then wait until members are forgotten."""
        steps = (self._ask, self._ask, self._ask, self._ask, self._replicate, self._replicate, self._wait, self._wait)
        for _ in range(STEP_COUNT):
            rare = self._draws.number(0, 24)
            {0: self._move, 1: self._time_out, 2: self._resign}.get(rare, self._draws.one((*steps, self._member)))()
            if self._told:
                return self._told
        return self._end()

    # What clients ask.

    def _ask(self) -> None:
        draws = self._draws
        group_id = draws.one(tuple(HOME))
        leading = [broker for broker, partition in self._state if partition == HOME[group_id]]
        broker = draws.one((*leading * 6, 0, 1))
        kind = draws.number(0, 9)
        if kind == 0:
            self._send(broker, group_id, FindCoordinatorRequest(group_id), self._found(broker, group_id))
        elif kind == 1:
            wanted = TopicMetadataResponse({"u": 1})
            self._send(broker, group_id, TopicMetadataRequest(("u", "x")), lambda told: told == wanted)
        elif kind < 6 or group_id in "cg":
            self._fetch(broker, group_id)
        else:
            self._commit(broker, group_id)

    def _found(self, broker: int, group_id: str) -> Callable[[Any], bool]:
        leader = self._draws.one((None, NO_LEADER, BrokerId(0), BrokerId(1)))
        known = {} if leader is None else {HOME[group_id]: SimpleNamespace(leader=leader)}
        self._hosts[broker].image.partitions = known
        none = FindCoordinatorResponse(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        wanted = none if leader in (None, NO_LEADER) else FindCoordinatorResponse(BrokerId(leader or 0))
        return lambda told: told == wanted

    def _fetch(self, broker: int, group_id: str) -> None:
        request = OffsetFetchRequest(partitions=self._draws.some(EVERY, 1))
        if self._refused(broker, group_id, request):
            return
        partition = HOME[group_id]
        log, until_ms = self._logs[partition], self._now + WAIT_MS
        has_led, end_offset = partition in self._hosts[broker].leads, log.log_end_offset
        is_stable = log.high_watermark == end_offset or not has_led

        def is_right(told: Any) -> bool:
            if told.error is not ErrorCode.NONE:
                is_unknown = log.high_watermark < end_offset or partition not in self._hosts[broker].leads
                is_due = self._now >= until_ms and is_unknown
                return told.error is ErrorCode.NOT_COORDINATOR and not is_stable and (is_due or self._is_losing)
            known = log.committed(group_id, self._read_from[broker, partition])
            offsets = tuple(known.get((each.topic, int(each.partition))) for each in request.partitions)
            return not has_led or (told.offsets == offsets and (is_stable or log.high_watermark >= end_offset))

        ticket = self._send(broker, group_id, request, is_right, 0 if is_stable else WAIT_MS + LOOK_MS)
        if not is_stable:
            self._open[ticket].end_offset = end_offset

    def _commit(self, broker: int, group_id: str) -> None:
        draws, host, partition = self._draws, self._hosts[broker], HOME[group_id]
        commits = tuple(Commit(each, Offset(draws.number(0, 99)), None, "x") for each in draws.some(EVERY, 1))
        request = OffsetCommitRequest(commits=commits)
        if self._refused(broker, group_id, request):
            return
        host.refusing = draws.one(REFUSALS) if draws.is_one_in(6) else ErrorCode.NONE
        failed = host.refusing if partition in host.leads else ErrorCode.NOT_LEADER_OR_FOLLOWER
        numbers: list[int] = []

        def is_right(told: Any) -> bool:
            result = failed if failed is not ErrorCode.NONE else self._result.get(numbers[0] if numbers else -1)
            wanted = ErrorCode.NOT_COORDINATOR if self._is_losing else _REFUSED.get(result, result)
            return bool(told == OffsetCommitResponse((wanted,) * len(commits)))

        ticket = self._send(broker, group_id, request, is_right, 10**9)
        host.refusing = ErrorCode.NONE
        if failed is not ErrorCode.NONE:
            self._expect(ticket not in self._open and not host.appended, f"refused by {failed} {request} waits")
            return
        stored = [
            (each.partition.topic, each.partition.partition, each.offset, "x", WALL_MS + self._now) for each in commits
        ]
        found = [
            (key.topic, key.partition, value and value.offset, value and value.metadata, value and value.committed_ms)
            for _, _, _, batch in host.appended
            for _, key, value in self._logs[partition].commits_of(batch)
            if key.group_id == group_id
        ]
        is_waiting = ticket in self._open and len(host.appended) == 1
        self._expect(is_waiting and found == stored, f"{request} is stored as {host.appended}: {found}")
        if not self._told:
            numbers.append(host.appended[0][1])
            self._open[ticket].number = numbers[0]

    # The end.

    def _calm(self) -> None:
        """Let broker 0 lead, and nothing be under way."""
        self._is_calm = True
        for broker, partition in list(self._state):
            self._lose(broker, partition)
        self._pending.clear()
        for partition in self._logs:
            self._gain(0, partition)
        self._wait(LOAD_MS)
        self._settle()

    def _end(self) -> str:
        """Let nothing go wrong any more: members stay over a change of brokers, until they are silent for long."""
        self._calm()
        for for_ms in (500, 5_500, 5_500, 500, 5_500, 5_500, 500):
            for group_id in "cg":
                self._member_of(group_id)
            self._settle()
            self._wait(for_ms)
            self._settle()
        self._expect({"c", "g"} == self._known_ms.keys(), f"members in calm know {self._known_ms}")
        self._calm()
        for group_id in "cg":
            self._member_of(group_id)
        self._expect({"c", "g"} == self._known_ms.keys(), f"after a change of brokers members know {self._known_ms}")
        for for_ms in (5_000,) * 10:
            self._wait(for_ms)
            self._settle()
        for group_id in HOME:
            self._fetch(0, group_id)
        self._expect(not self._open, f"at last {self._open} wait")
        if self._told:
            return self._told
        (name, generation), (_, epoch) = self._members["c"], self._members["g"]
        beats = (
            ("c", HeartbeatRequest(ticket=Ticket(0), member_id=MemberId(name), generation=generation)),
            ("g", ConsumerGroupHeartbeatRequest(member_id=MemberId("m"), epoch=epoch)),
        )
        for group_id, beat in beats:
            self._send(0, group_id, beat, lambda told: told.error is ErrorCode.UNKNOWN_MEMBER_ID)
        return self._told
