"""The events, moments and sums that are derived from a metadata log."""

from __future__ import annotations

import attrs
import pytest

from broker.errors import UsageError
from broker.ids import Offset
from broker.units import TimeMs
from log.metadata import (
    END,
    MetadataFile,
    MetadataRecord,
    Moment,
    RecordType,
    Replay,
    SnapshotId,
    arrange,
    images_at,
    live_moments,
    snapshot_id,
)
from log.metadata.durations import BrokerTimes, ClusterHistory, PartitionTimes, Summary
from log.metadata.history import ClusterEventKind, Event
from log.metadata.reading import MetadataFiles
from tests.log.metadata.made import (
    ORDERS,
    REAL_NEWEST,
    START_MS,
    Change,
    batches,
    broker,
    change,
    config,
    fenced,
    log_file,
    made,
    partition,
    real_files,
    snapshot_file,
    topic,
)

START = (broker(1), broker(2), broker(3), topic(), partition(1, 2, 3))


def history_of(*appends: Change) -> tuple[list[Event], Summary]:
    """Return the events after the first append, and the sums."""
    history = ClusterHistory(Replay(arrange([log_file(START, *appends)])))
    events = [event for event in history.events() if event.time_ms > START_MS]
    return events, history.summary()


def said(*records: MetadataRecord) -> list[tuple[ClusterEventKind, str, str]]:
    """Return the events of appends of one record each."""
    return [(event.what, event.subject, event.detail) for event in history_of(*((record,) for record in records))[0]]


def test_who_left_and_joined_the_isr_is_reported() -> None:
    assert said(change(isr=(1, 2)), change(isr=(1, 3)), change(isr=(3, 1, 2)), change(isr=(1, 2, 3))) == [
        (ClusterEventKind.ISR_SHRUNK, "orders-0", "1, 2, 3 → 1, 2; left: 3"),
        (ClusterEventKind.ISR_CHANGED, "orders-0", "1, 2 → 1, 3; left: 2; joined: 3"),
        (ClusterEventKind.ISR_GROWN, "orders-0", "1, 3 → 3, 1, 2; joined: 2"),
    ]


def test_an_election_is_unclean_if_the_leader_was_neither_in_sync_nor_eligible() -> None:
    assert [what for what, _, _ in said(change(leader=2))] == [ClusterEventKind.LEADER_ELECTED]
    assert [what for what, _, _ in said(change(leader=1))] == [ClusterEventKind.LEADER_REELECTED]
    lost = change(isr=(), leader=-1, eligibleLeaderReplicas=(2,))
    assert [what for what, _, _ in said(lost, change(leader=2))][-1] is ClusterEventKind.LEADER_ELECTED
    assert said(lost, change(leader=3, isr=(3,)))[-2] == (
        ClusterEventKind.UNCLEAN_ELECTION,
        "orders-0",
        "none → 3, epoch 2; in sync before: none, eligible: 2",
    )


def test_an_election_is_unclean_if_the_controller_says_that_the_leader_must_recover() -> None:
    lost = change(isr=(), leader=-1, eligibleLeaderReplicas=(2,))
    elected = change(leader=2, isr=(2,), leaderRecoveryState=1)
    found = [what for what, _, _ in said(lost, elected, change(leader=2), change(leaderRecoveryState=0))]
    assert found == [
        ClusterEventKind.LEADER_LOST,
        ClusterEventKind.ISR_SHRUNK,
        ClusterEventKind.UNCLEAN_ELECTION,
        ClusterEventKind.ISR_GROWN,
        ClusterEventKind.LEADER_REELECTED,
        ClusterEventKind.RECOVERED,
    ]


def test_cordoned_directories_are_reported() -> None:
    kind = RecordType.BROKER_REGISTRATION_CHANGE_RECORD
    none, one = (made(kind, brokerId=2, brokerEpoch=2, cordonedLogDirs=each) for each in ((), (ORDERS,)))
    again = broker(2, brokerEpoch=3)
    one_again, none_again = (attrs.evolve(each, data={**each.data, "brokerEpoch": 3}) for each in (one, none))
    assert said(none, one, fenced(2), again, one_again, none_again) == [
        (ClusterEventKind.BROKER_CORDONED, "broker 2", "0 → 1 cordoned"),
        (ClusterEventKind.BROKER_FENCED, "broker 2", ""),
        (ClusterEventKind.BROKER_REGISTERED, "broker 2", "epoch 3, rack rack-2"),
        (ClusterEventKind.BROKER_UNFENCED, "broker 2", ""),
        (ClusterEventKind.BROKER_CORDONED, "broker 2", "1 → 0 cordoned"),
    ]


MOVE = change(replicas=(1, 2, 4), addingReplicas=(4,), removingReplicas=(1, 2), isr=(1, 2))
MOVED = {"replicas": (4,), "isr": (4,), "leader": 4, "addingReplicas": (), "removingReplicas": ()}


@pytest.mark.parametrize("level", [None, 3, 4, 30])
def test_the_election_that_ends_a_reassignment_is_clean_in_every_release(level: int | None) -> None:
    version = (
        [] if level is None else [made(RecordType.FEATURE_LEVEL_RECORD, name="metadata.version", featureLevel=level)]
    )
    events, summary = history_of(version or [change()], [MOVE], [change(**MOVED)])
    assert ClusterEventKind.LEADER_ELECTED in [event.what for event in events]
    assert ClusterEventKind.UNCLEAN_ELECTION not in [event.what for event in events]
    assert sum(each.unclean_election_count for each in summary.partitions) == 0
    # The controller marks the same record as unclean where it is.
    events, summary = history_of(version or [change()], [MOVE], [change(**MOVED, leaderRecoveryState=1)])
    assert ClusterEventKind.UNCLEAN_ELECTION in [event.what for event in events]


def test_before_the_recovery_state_an_election_outside_the_isr_is_unclean() -> None:
    elected = change(isr=(3,), leader=3)
    for level, expected in ((3, ClusterEventKind.UNCLEAN_ELECTION), (4, ClusterEventKind.LEADER_ELECTED)):
        version = made(RecordType.FEATURE_LEVEL_RECORD, name="metadata.version", featureLevel=level)
        assert expected in [what for what, _, _ in said(version, change(isr=(1, 2)), elected)]


def test_an_unclean_election_of_a_recovering_partition_is_not_marked_again() -> None:
    version = made(RecordType.FEATURE_LEVEL_RECORD, name="metadata.version", featureLevel=30)
    first, lost = change(isr=(3,), leader=3, leaderRecoveryState=1), change(leader=-1)
    kinds = [what for what, _, _ in said(version, change(isr=(1, 2)), first, lost, change(isr=(2,), leader=2))]
    assert kinds.count(ClusterEventKind.UNCLEAN_ELECTION) == 2
    again = [what for what, _, _ in said(version, change(isr=(1, 2)), first, lost, change(leader=3))]
    assert again.count(ClusterEventKind.UNCLEAN_ELECTION) == 1


def test_a_reassignment_is_reported_from_its_beginning_to_its_end() -> None:
    events, _ = history_of(
        (change(replicas=(1, 2, 4), addingReplicas=(4,), removingReplicas=(3,)),),
        (change(addingReplicas=()),),
        (change(removingReplicas=()),),
        (change(replicas=(4, 1, 2)),),
    )
    assert [(event.what, event.detail, event.duration_ms) for event in events] == [
        (ClusterEventKind.REASSIGNMENT_BEGUN, "adding 4, removing 3", None),
        (ClusterEventKind.REASSIGNMENT_CHANGED, "removing 3", None),
        (ClusterEventKind.REASSIGNMENT_ENDED, "replicas 1, 2, 4", 2000),
        (ClusterEventKind.REPLICAS_CHANGED, "1, 2, 4 → 4, 1, 2", None),
    ]


def test_brokers_topics_settings_and_access_are_reported() -> None:
    removal = made(RecordType.REMOVE_TOPIC_RECORD, topicId=ORDERS)
    acl = made(RecordType.ACCESS_CONTROL_ENTRY_RECORD, principal="User:a", resourceName="orders")
    quota = made(RecordType.CLIENT_QUOTA_RECORD, entity=({"entityType": "user", "entityName": "a"},), key="rate")
    found = said(
        broker(4, fenced=True),
        fenced(4, False),
        broker(4, brokerEpoch=9),
        made(RecordType.UNREGISTER_BROKER_RECORD, brokerId=4),
        config("retention.ms", "1", topic="orders"),
        config("ssl.key.password", "secret"),
        made(RecordType.FEATURE_LEVEL_RECORD, name="group.version", featureLevel=1),
        acl,
        quota,
        partition(1, number=1),
        removal,
    )
    assert found == [
        (ClusterEventKind.BROKER_REGISTERED, "broker 4", "epoch 4, rack rack-4"),
        (ClusterEventKind.BROKER_UNFENCED, "broker 4", ""),
        (ClusterEventKind.BROKER_REGISTERED, "broker 4", "epoch 9, rack rack-4"),
        (ClusterEventKind.BROKER_UNREGISTERED, "broker 4", ""),
        (ClusterEventKind.SETTING_CHANGED, "orders", "retention.ms: not set → 1"),
        (ClusterEventKind.SETTING_CHANGED, "all brokers", "ssl.key.password set"),
        (ClusterEventKind.FEATURE_CHANGED, "group.version", "0 → 1"),
        (ClusterEventKind.ACCESS_CHANGED, "User:a on orders", "rule added"),
        (ClusterEventKind.QUOTA_CHANGED, "rate of user a", ""),
        (ClusterEventKind.PARTITION_ADDED, "orders-1", "replicas 1"),
        (ClusterEventKind.TOPIC_DELETED, "orders", "2 partitions"),
    ]


def test_what_ended_with_its_topic_has_no_part_in_a_later_topic_of_the_name() -> None:
    removed = made(RecordType.REMOVE_TOPIC_RECORD, topicId=ORDERS)
    again = (topic(), partition(1, 2, addingReplicas=(2,)))
    lost = change(isr=(), leader=-1, addingReplicas=(2,))
    events, _ = history_of((lost,), (removed,), again, (change(leader=2, isr=(2,), addingReplicas=()),))
    lasted = {event.what: event.duration_ms for event in events}
    assert (lasted[ClusterEventKind.LEADER_ELECTED], lasted[ClusterEventKind.REASSIGNMENT_ENDED]) == (None, 1000)


def test_a_broker_stops_once_until_it_registers_again() -> None:
    stopping = made(
        RecordType.BROKER_REGISTRATION_CHANGE_RECORD, brokerId=1, brokerEpoch=1, fenced=0, inControlledShutdown=1
    )
    found = said(stopping, fenced(1), stopping, broker(1, brokerEpoch=9), fenced(2))
    assert [what for what, subject, _ in found if subject == "broker 1"] == [
        ClusterEventKind.BROKER_STOPPING,
        ClusterEventKind.BROKER_FENCED,
        ClusterEventKind.BROKER_REGISTERED,
        ClusterEventKind.BROKER_UNFENCED,
    ]


def test_times_in_bad_states_are_summed_up_to_the_end() -> None:
    _, summary = history_of(
        (change(isr=(), leader=-1),),  # From 1 s: leaderless.
        (change(isr=(1,), leader=1),),  # From 2 s, unclean: only under-replicated.
        (config("min.insync.replicas", "3", topic="orders"),),  # From 3 s: under min ISR, too.
        (config("min.insync.replicas", "2"),),  # The topic's own setting holds.
        (change(isr=(1, 2, 3)),),  # From 5 s: well.
        (change(isr=(2, 3), leader=3, leaderRecoveryState=1),),  # From 6 s to the end at 7 s.
        (fenced(1),),
    )
    assert summary.partitions == (
        PartitionTimes(
            topic="orders",
            partition=0,
            leaderless_ms=1000,
            under_min_isr_ms=1000 + 2000 + 1000,
            under_replicated_ms=4000 + 1000,
            isr_shrink_count=2,
            unclean_election_count=2,
        ),
    )
    assert (summary.start_ms, summary.end_ms) == (START_MS, START_MS + 7000)


def test_nothing_lasts_less_than_no_time_when_the_clock_of_the_next_controller_is_behind() -> None:
    lost, back = (change(isr=(), leader=-1), fenced(3)), (change(isr=(1, 2, 3), leader=1), fenced(3, False))
    data = batches(START, lost, back, step_ms=-1000)
    history = ClusterHistory(Replay(arrange([MetadataFile("0.log", "0.log", data)])))
    assert {event.duration_ms for event in history.events() if event.time_ms == START_MS - 2000} == {None, 0}
    summary = history.summary()
    assert (summary.partitions, summary.brokers) == ((), (BrokerTimes(3, fenced_count=1, fenced_ms=0),))


def test_what_a_snapshot_says_is_no_event_and_lasts_from_then_at_least() -> None:
    moved = partition(1, 2, number=1, addingReplicas=(2,))
    files = [
        snapshot_file(
            9, broker(1, fenced=True), topic(), partition(1, leader=-1, isr=()), moved, time_ms=START_MS - 5000
        ),
        log_file((change(leader=1, isr=(1,)), change(1, addingReplicas=()), fenced(1, False)), start_offset=9),
    ]
    history = ClusterHistory(Replay(arrange(files)))
    assert [(event.what, event.duration_ms, event.duration_ms_min) for event in history.events()] == [
        (ClusterEventKind.UNCLEAN_ELECTION, None, 5000),
        (ClusterEventKind.ISR_GROWN, None, None),
        (ClusterEventKind.REASSIGNMENT_ENDED, None, 5000),
        (ClusterEventKind.BROKER_UNFENCED, None, 5000),
    ]
    summary = history.summary()
    assert (summary.partitions[0].leaderless_ms, summary.brokers) == (5000, (BrokerTimes(1, 1, 5000),))


def begun_with(found: SnapshotId, file: MetadataFile, *segments: MetadataFile) -> Replay:
    """Return a log that begins with a snapshot; the segments' records before its end are passed over."""
    return Replay(MetadataFiles(file, segments, (), found))


def real_snapshots() -> list[tuple[SnapshotId, MetadataFile]]:
    """Return the snapshots of the real log that hold something."""
    found = [(snapshot_id(file.name), file) for file in real_files()]
    return [(each, file) for each, file in found if each is not None and each.end_offset]


def test_a_log_that_begins_with_a_snapshot_reports_the_later_events_of_the_whole_log() -> None:
    (segment,) = (file for file in real_files() if file.name.endswith(".log"))
    whole = list(ClusterHistory(Replay(arrange([segment]))).events())
    at_least = 0
    for found, file in real_snapshots():
        events = list(ClusterHistory(begun_with(found, file, segment)).events())
        expected = [event for event in whole if event.offset >= found.end_offset]
        assert len(events) == len(expected) > 0
        for ours, theirs in zip(events, expected, strict=True):
            if ours.duration_ms_min is None:
                assert ours == theirs
            else:
                assert ours.duration_ms is None
                assert theirs.duration_ms is not None
                assert ours.duration_ms_min <= theirs.duration_ms
                assert attrs.evolve(ours, duration_ms_min=None, duration_ms=theirs.duration_ms) == theirs
                at_least += 1
    assert at_least > 0


def test_the_log_of_the_newest_release_reports_the_unclean_elections_that_its_controller_marked() -> None:
    history = ClusterHistory(Replay(arrange(real_files(REAL_NEWEST))))
    events = list(history.events())
    # As many as the controller's own log says: "leaderRecoveryState: RECOVERED -> RECOVERING".
    unclean = [event.subject for event in events if event.what is ClusterEventKind.UNCLEAN_ELECTION]
    assert unclean == ["lone-2", "gone-0", "audit-1", "lone-1"]
    ended = {event.offset: event.subject for event in events if event.what is ClusterEventKind.REASSIGNMENT_ENDED}
    elected = [event for event in events if event.offset in ended and event.what is ClusterEventKind.LEADER_ELECTED]
    assert [event.subject for event in elected] == ["lone-0", "lone-1", "lone-2", "lone-0", "lone-1"]
    cordoned = [(event.subject, event.detail) for event in events if event.what is ClusterEventKind.BROKER_CORDONED]
    assert cordoned == [
        ("broker 2", "0 → 1 cordoned"),
        ("broker 3", "0 → 2 cordoned"),
        ("broker 3", "2 → 0 cordoned"),
    ]


def test_moments_are_found_before_the_live_brokers_changed() -> None:
    replay = Replay(arrange(real_files()))
    moments = live_moments(replay)
    assert moments[-1] is END
    images = list(images_at(Replay(arrange(real_files())), moments))
    live = [[each.id for each in image.brokers.values() if not each.fenced] for image in images]
    assert [sorted(each) for each in live] == [
        [1, 2, 3, 4],
        [1, 2, 4],
        [1, 2, 3, 4],
        [2, 3, 4],
        [2, 3],
        [1, 2, 3],
        [1, 2, 3, 4],
    ]
    with_topics = [image.topics[next(iter(image.topics))] for image in images]
    assert all(topic.partitions for topic in with_topics)


def test_of_many_moments_the_last_are_shown() -> None:
    changes = [(fenced(1, place % 2 == 0),) for place in range(40)]
    moments = live_moments(Replay(arrange([log_file(START, *changes)])))
    assert moments == (*(Moment(offset=Offset(offset)) for offset in range(21, 44)), END)


def test_a_log_that_begins_with_a_snapshot_has_the_moments_of_the_whole_log_from_there_on() -> None:
    (segment,) = (file for file in real_files() if file.name.endswith(".log"))
    whole = live_moments(Replay(arrange([segment])))
    for found, file in real_snapshots():
        expected = tuple(each for each in whole if each.offset is not None and each.offset >= found.end_offset - 1)
        assert live_moments(begun_with(found, file, segment)) == expected


def test_moments_are_offsets_or_times_that_do_not_go_back() -> None:
    files = [log_file(START, (fenced(1),), (fenced(2),))]
    times = (Moment(time_ms=TimeMs(START_MS)), Moment(time_ms=TimeMs(START_MS + 1999)), Moment(offset=Offset(99)))
    assert [image.offset for image in images_at(Replay(arrange(files)), times)] == [4, 5, 6]
    for wrong in ((Moment(time_ms=TimeMs(5)),), (Moment(offset=Offset(5)), Moment(offset=Offset(4)))):
        with pytest.raises(UsageError, match=f"^{wrong[-1]} lies before the beginning of the log, or before"):
            list(images_at(Replay(arrange(files)), wrong))
    with pytest.raises(UsageError, match="a moment is an offset or a time, one of the two"):
        Moment()
