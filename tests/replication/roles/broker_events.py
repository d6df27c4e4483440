"""Messages of the controller, leaders and timers to one broker, and what it owes for them.

Each step hands the broker one message and returns the messages that are due; None if there was nothing to send.

Source: KIP-101, 320, 497, 595 and 631.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, BrokerId, LeaderEpoch, Offset
from broker.registration import BrokerState
from broker.units import DurationMs, TimeMs
from replication.roles.leader import LeaderRole
from replication.roles.messages import (
    AlterPartitionResponse,
    AlterPartitionRetryDue,
    BrokerHeartbeatResponse,
    BrokerRecord,
    CheckpointDue,
    Fetch,
    FetchDue,
    FetchResponse,
    HeartbeatDue,
    LagCheckDue,
    ListOffsets,
    ListOffsetsResponse,
    Message,
    MetadataFetchDue,
    MetadataFetchResponse,
    MetadataRecord,
    PartitionRecord,
    PartitionRemoved,
    RegistrationDue,
)
from replication.rules.alter_partition import Altered
from replication.rules.epochs import latest_epoch
from replication.rules.fetch import FetchAnswer, FetchRequest
from replication.rules.isr import lagging
from replication.rules.partition import BrokerStatus, PartitionEpoch, PartitionState
from tests.replication.roles.broker_facts import OWN, Part, Said
from tests.replication.roles.broker_world import EPOCH, SETTINGS, World, record

_PEERS: Final = (BrokerId(1), BrokerId(2))
_ALL: Final = (OWN, *_PEERS)
_ERRORS: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


def began(world: World) -> list[Said]:
    """Tell of the brokers: this one is fenced, and says at once that it has read so."""
    records = tuple(BrokerRecord(each, BrokerStatus(epoch=EPOCH, fenced=each == OWN)) for each in _ALL)
    return [*_told(world, records), world.heartbeat()]


def _told(world: World, records: tuple[MetadataRecord, ...]) -> list[Said]:
    world.tell(MetadataFetchResponse(world.question, world.role.image.offset, records))
    world.question += 1
    return [world.asks_metadata()]


def heard(world: World, part: Part) -> list[Said]:
    """Tell of a change of a partition; an answer to a former question says nothing."""
    draws, before = world.draws, part.state
    if draws.is_one_in(10):
        late = PartitionState(replicas=_ALL, isr=_ALL, leader=OWN, partition_epoch=PartitionEpoch(10**6))
        offset = world.role.image.offset
        is_former = draws.is_one_in(2)
        number, offset = (world.question - 1, offset) if is_former else (world.question, offset - 1)
        world.tell(MetadataFetchResponse(number, offset, (PartitionRecord(part.number, late),)))
        return []
    if before is not None and draws.is_one_in(15):
        due = list(part.ended(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)) if part.is_led else []
        part.dropped()
        part.state = None
        return due + _told(world, (PartitionRemoved(part.number),))
    after = _changed(world, before)
    due, begins = _moved(part, after)
    due += _told(world, (PartitionRecord(part.number, after),))
    world.advances = part.is_led
    return [*due, _fetch(world, part)] if begins else due


def _changed(world: World, before: PartitionState | None) -> PartitionState:
    draws = world.draws
    replicas = _PEERS if draws.is_one_in(6) else _ALL
    isr = draws.some(replicas, 1)
    leader = draws.one((*isr, *[OWN] * 2 * (OWN in isr), NO_LEADER))
    epoch, partition_epoch = LeaderEpoch(0), PartitionEpoch(0)
    if before is not None:
        if before.leader in isr and draws.is_one_in(2):
            leader = before.leader
        is_new = leader != before.leader or len(replicas) < len(before.replicas) or draws.is_one_in(4)
        epoch = LeaderEpoch(before.leader_epoch + is_new)
        partition_epoch = PartitionEpoch(before.partition_epoch + 1)
    return PartitionState(
        replicas=replicas, isr=isr, leader=leader, leader_epoch=epoch, partition_epoch=partition_epoch
    )


def _moved(part: Part, after: PartitionState) -> tuple[list[Said], bool]:
    """Note what the broker makes of a partition's new state; return what is due, and whether it begins to fetch."""
    was_held, was_led, was_epoch = part.is_held, part.is_led, part.epoch
    part.state = after
    if part.is_lost or part.is_unusable:
        return [], False
    follows = after.leader != OWN
    due = list(part.ended(ErrorCode.NOT_LEADER_OR_FOLLOWER, after.leader_epoch)) if was_led and follows else []
    if OWN not in after.replicas:
        part.dropped()
        return due, False
    part.is_unusable = part.is_foreign
    if part.is_foreign:
        return [], False
    part.is_open = True
    is_new = not was_held or after.leader_epoch > was_epoch
    if not follows:
        part.role = ""
        part.epoch_start = part.end if is_new else part.epoch_start
    elif is_new:
        part.role = "leaderless" if after.leader == NO_LEADER else "fetching"
    return due, is_new and part.role == "fetching"


def _fetch(world: World, part: Part) -> Said:
    """Return the fetch that a follower sends now, and note its number."""
    assert part.state is not None
    log = world.logs[part.number].state
    request = FetchRequest(
        replica=OWN,
        offset=Offset(part.end),
        leader_epoch=part.state.leader_epoch,
        last_fetched_epoch=latest_epoch(log.epochs),
        start_offset=Offset(part.start),
        broker_epoch=EPOCH,
    )
    return _sent(world, part, Said(part.state.leader, "Fetch", part.number, (request,)))


def _sent(world: World, part: Part, due: Said) -> Said:
    """Note the number of a follower's request."""
    sent = [each for _, each in world.out.sent if isinstance(each, Fetch | ListOffsets)]
    part.asked = next((each.number for each in reversed(sent) if each.partition == part.number), part.asked)
    return due


def answered(world: World, part: Part) -> list[Said] | None:
    """Let a leader answer a follower, or its timer ring; what it does not wait for it ignores."""
    draws = world.draws
    if part.state is None or part.state.leader == OWN or not part.is_held:
        return None
    number = part.asked - draws.is_one_in(6)
    message = draws.one((_due, _fetch_response, _fetch_response, _fetch_response, _bounds, _bounds))(
        world, part, number
    )
    role, is_awaited = part.role, number == part.asked
    world.tell(message, part.state.leader)
    if world.disks.failed or not is_awaited:
        return []
    if isinstance(message, FetchDue) and role in ("fetching", "placing"):
        part.role = "fetching"
        return [_fetch(world, part)]
    if isinstance(message, ListOffsetsResponse) and role == "placing":
        return _placed(world, part, message)
    if isinstance(message, FetchResponse) and role == "fetching":
        return _took(world, part, message)
    return []


def _due(world: World, part: Part, number: int) -> Message:
    return FetchDue(part.number, number)


def _fetch_response(world: World, part: Part, number: int) -> Message:
    draws = world.draws
    error = draws.one((*[ErrorCode.NONE] * 4, *_ERRORS, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.OFFSET_OUT_OF_RANGE))
    if error is not ErrorCode.NONE:
        return FetchResponse(part.number, number, FetchAnswer(error=error), b"")
    records = record(part.end, part.epoch, world.now_ms) if draws.is_one_in(2) else b""
    if records and draws.is_one_in(3):
        records = records[:-1] + bytes([records[-1] ^ 1])
    high, end = Offset(draws.number(0, part.end + 1)), Offset(part.end + 1)
    start = Offset(draws.one((0, 0, draws.number(0, min(high, part.end)))))
    answer = FetchAnswer(high_watermark=high, start_offset=start, end_offset=end)
    return FetchResponse(part.number, number, answer, records)


def _bounds(world: World, part: Part, number: int) -> Message:
    draws = world.draws
    error = draws.one((ErrorCode.NONE, ErrorCode.NONE, *_ERRORS, ErrorCode.FENCED_LEADER_EPOCH))
    start = draws.number(0, part.end + 2)
    end = start + draws.number(0, 3)
    return ListOffsetsResponse(part.number, number, error, Offset(start), Offset(end))


def _waits(world: World, part: Part, error: ErrorCode) -> list[Said]:
    """Note what a follower makes of an error: it waits for metadata, or for some time."""
    if error is ErrorCode.FENCED_LEADER_EPOCH:
        part.role = "parked"
    else:
        world.timers.append((SETTINGS.fetch_backoff_ms, FetchDue(part.number, part.asked)))
    return []


def _took(world: World, part: Part, response: FetchResponse) -> list[Said]:
    assert part.state is not None
    error = response.answer.error
    if error is ErrorCode.OFFSET_OUT_OF_RANGE:
        part.role = "placing"
        asks = Said(part.state.leader, "ListOffsets", part.number, (part.state.leader_epoch,))
        return [_sent(world, part, asks)]
    is_whole = response.records in (b"", record(part.end, part.epoch, world.sent_ms))
    if error is not ErrorCode.NONE or not is_whole:
        return _waits(world, part, error)
    part.end += bool(response.records)
    part.start = max(part.start, min(response.answer.start_offset, world.high_watermark(part)))
    return [_fetch(world, part)]


def _placed(world: World, part: Part, response: ListOffsetsResponse) -> list[Said]:
    if response.error is not ErrorCode.NONE:
        return _waits(world, part, response.error)
    part.role = "fetching"
    if part.end < response.start_offset:
        part.start = part.end = response.start_offset
    else:
        part.end = min(part.end, response.end_offset)
        part.start = min(part.start, part.end)
    return [_fetch(world, part)]


def altered(world: World, part: Part) -> list[Said] | None:
    """Let the controller answer a leader that has asked for another ISR, or its timer ring."""
    pending = world.pending(part.number)
    if pending is None or not part.is_led or part.state is None:
        return None
    if world.draws.is_one_in(3):
        world.tell(AlterPartitionRetryDue(part.number, pending))
        return []
    code = world.draws.one((ErrorCode.NONE, ErrorCode.NONE, ErrorCode.INELIGIBLE_REPLICA, ErrorCode.NOT_CONTROLLER))
    after = part.state
    if code is ErrorCode.NONE:
        later = PartitionEpoch(part.state.partition_epoch + 1)
        after = part.state = attrs.evolve(part.state, isr=pending.members, partition_epoch=later)
    world.tell(AlterPartitionResponse(part.number, pending, Altered(code, after)))
    world.advances = code is not ErrorCode.NOT_CONTROLLER
    if not world.advances:
        world.timers.append((SETTINGS.fetch_backoff_ms, AlterPartitionRetryDue(part.number, pending)))
    assert (world.pending(part.number) is pending) == (code is ErrorCode.NOT_CONTROLLER), code
    return []


def reminded(world: World, part: Part) -> list[Said]:
    """Let one of the broker's own timers ring, or a heartbeat be answered."""
    number = world.question - world.draws.is_one_in(2)
    timers: tuple[tuple[Message, DurationMs | None, list[Said]], ...] = (
        (HeartbeatDue(), SETTINGS.heartbeat_ms, [world.heartbeat()]),
        (LagCheckDue(), DurationMs(SETTINGS.settings.lag_ms_max // 2), []),
        (CheckpointDue(), SETTINGS.checkpoint_ms, []),
        (RegistrationDue(), None, []),
        (BrokerHeartbeatResponse(ErrorCode.NONE, BrokerState.UNFENCED), None, []),
        (MetadataFetchDue(number), None, []),
    )
    message, again_ms, due = world.draws.one(timers)
    leaders = {each: role.state for each, role in world.role.roles.items() if isinstance(role, LeaderRole)}
    ends = {each: world.logs[each].log.log_end_offset for each in leaders}
    world.tell(message)
    if again_ms is not None:
        world.timers.append((again_ms, message))
    if isinstance(message, CheckpointDue):
        held = {each.number: world.high_watermark(each) for each in world.parts.values() if each.is_held}
        assert world.checkpointed == held, (world.checkpointed, held)
    for partition, state in leaders.items() if isinstance(message, LagCheckDue) else ():
        late = lagging(state, ends[partition], TimeMs(world.now_ms), SETTINGS.settings)
        asked, left = world.pending(partition), tuple(each for each in state.isr if each not in late)
        assert not late or (asked is not None and asked.members == left), (partition, late, asked)
    if isinstance(message, MetadataFetchDue) and number == world.question:
        world.question += 1
        due = [world.asks_metadata()]
    return due
