"""One fact for each switch of the rules: true while the switch is on, false while it is off.

A fact takes rules and asserts what the switch is there for, in the smallest case that shows it. The table of
mutations runs each under current rules, where it must hold, and with its switch off, where it must not.
"""

from __future__ import annotations

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.units import TimeMs
from replication.rules.alter_partition import alter
from replication.rules.controller_events import directories_assigned, fenced, fenced_together, restarted_uncleanly
from replication.rules.epochs import UNDEFINED_END, end_offset_for
from replication.rules.fencing import (
    StopProof,
    StoredReplica,
    check_control_request,
    has_session,
    is_clean_registration,
    is_stray,
    proof_while_loading,
)
from replication.rules.fetch import FetchAnswer, FollowerFetchHandler, after_answer, answer_fetch, is_sent_at_once
from replication.rules.follower_read import latest_offset, preferred_replica
from replication.rules.high_watermark import leader_high_watermark, restarted_high_watermark
from replication.rules.isr import lagging, may_join, propose_expand, propose_shrink
from replication.rules.leadership import become_leader, unassigned
from replication.rules.partition import BrokerStatus, EpochEnd
from replication.rules.partition_change import change, target_of
from replication.rules.settings import needed_in_sync
from replication.rules.switches import Rules
from replication.rules.truncation import answer_epoch_end, truncated
from tests.replication.builders import (
    LAG_MS_MAX,
    NOBODY,
    NOW,
    active,
    fetch,
    follower,
    ids,
    leader,
    log,
    moment,
    partition,
    request,
    settings,
    statuses,
)

BROKER_EPOCH = BrokerEpoch(0)
DIVERGING = FetchAnswer(
    diverging=EpochEnd(LeaderEpoch(1), Offset(2)),
    high_watermark=Offset(4),
    start_offset=Offset(0),
    end_offset=Offset(9),
)


def a_fetch_of_an_older_epoch_is_fenced(rules: Rules) -> None:
    answer = answer_fetch(leader(), log(4, (5, 0)), fetch(2, 4, epoch=4, last=5), rules)
    assert answer.error is ErrorCode.FENCED_LEADER_EPOCH


def a_question_about_epochs_from_another_epoch_is_not_answered(rules: Rules) -> None:
    error, _ = answer_epoch_end(leader(), log(4, (5, 0)), LeaderEpoch(5), LeaderEpoch(6), rules)
    assert error is ErrorCode.UNKNOWN_LEADER_EPOCH


def a_leader_without_records_knows_where_its_epoch_starts(rules: Rules) -> None:
    led = become_leader(unassigned(BrokerId(1)), partition(), log(3, (1, 0)), moment().now_ms, rules)
    assert led is not None
    assert end_offset_for(led.log.epochs, LeaderEpoch(4), Offset(3), rules) == EpochEnd(LeaderEpoch(1), Offset(3))
    assert end_offset_for(led.log.epochs, LeaderEpoch(0), Offset(3), rules) != UNDEFINED_END


def a_cut_at_the_end_still_drops_epochs_without_records(rules: Rules) -> None:
    assert truncated(log(3, (1, 0), (4, 3)), Offset(3), rules) == log(3, (1, 0))


def a_fetch_below_the_start_is_out_of_range_though_logs_part(rules: Rules) -> None:
    answer = answer_fetch(leader(), log(9, (3, 5), (5, 7), start=5), fetch(2, 4, last=4), rules)
    assert answer.error is ErrorCode.OFFSET_OUT_OF_RANGE


def the_end_of_a_log_that_parts_is_not_counted(rules: Rules) -> None:
    served = FollowerFetchHandler(settings(rules)).handle(
        leader(), log(4, (1, 0), (5, 2)), fetch(2, 3, last=3, broker_epoch=0), moment()
    )
    assert served.answer.diverging == EpochEnd(LeaderEpoch(1), Offset(2))
    assert served.leader == leader()


def a_follower_cuts_before_it_raises_its_high_watermark(rules: Rules) -> None:
    assert after_answer(log(4, (1, 0), (2, 2)), DIVERGING, rules).high_watermark == 0


def a_log_that_starts_anew_is_committed_up_to_its_start(rules: Rules) -> None:
    assert restarted_high_watermark(Offset(9), Offset(4), rules) == 4


def a_topic_created_anew_is_not_the_old_one(rules: Rules) -> None:
    old, new = StoredReplica("a", topic_id=1), {2: partition((1, 2))}
    assert is_stray(old, BrokerId(1), {2: "a"}, new, rules)


def a_silent_follower_that_has_everything_stays(rules: Rules) -> None:
    idle = leader(follower(2, 9), follower(3, 9))
    assert lagging(idle, Offset(9), moment().now_ms, settings(rules)) == ()


def nobody_joins_before_the_start_of_the_epoch(rules: Rules) -> None:
    new = leader(follower(2, 2), follower(3, 4), isr=(1, 3), epoch_start=4)
    assert not may_join(new, log(4, (1, 0)), follower(2, 2), moment(), settings(rules))


def nobody_joins_for_a_fetch_of_an_older_epoch(rules: Rules) -> None:
    assert not may_join(leader(isr=(1,)), log(4, (1, 0)), follower(2, 4, epoch=4), moment(), settings(rules))


def a_fenced_broker_does_not_join(rules: Rules) -> None:
    before = statuses(stopping=(2,))
    assert not may_join(leader(isr=(1,)), log(4), follower(2, 4), moment(before), settings(rules))
    assert alter(partition((1,)), request(1, 2), before, settings(rules)).error is ErrorCode.INELIGIBLE_REPLICA


def a_restarted_broker_does_not_join_for_what_it_held(rules: Rules) -> None:
    reborn = statuses(broker_epochs={2: 1})
    assert not may_join(leader(isr=(1,)), log(4), follower(2, 4), moment(reborn), settings(rules))
    assert alter(partition((1,)), request(1, 2), reborn, settings(rules)).error is ErrorCode.INELIGIBLE_REPLICA


def under_min_isr_only_who_is_caught_up_joins(rules: Rules) -> None:
    slow = follower(2, 4)
    assert not may_join(leader(isr=(1,)), log(9, committed=4), slow, moment(), settings(rules, min_isr=2))


def followers_of_an_older_epoch_do_not_commit(rules: Rules) -> None:
    late = leader(follower(2, 4, epoch=4), follower(3, 4))
    assert leader_high_watermark(late, log(4), moment(), settings(rules)) == 0


def a_change_of_the_isr_that_is_not_confirmed_commits_nothing(rules: Rules) -> None:
    state = leader(follower(2, 9), follower(3, 0))
    shrinking = propose_shrink(state, ids(3), BROKER_EPOCH)
    assert leader_high_watermark(shrinking, log(9), moment(), settings(rules)) == 0
    joining = propose_expand(attrs.evolve(state, isr=ids(1, 2)), BrokerId(3), BROKER_EPOCH)
    assert leader_high_watermark(joining, log(9), moment(), settings(rules)) == 0


def a_stopping_follower_outside_the_isr_holds_nothing_up(rules: Rules) -> None:
    recent = follower(3, 2, caught_up_at=NOW - LAG_MS_MAX)
    state = leader(follower(2, 9), recent, isr=(1, 2))
    assert leader_high_watermark(state, log(9), moment(statuses(stopping=(3,))), settings(rules)) == 9


def under_min_isr_nothing_is_committed(rules: Rules) -> None:
    assert leader_high_watermark(leader(isr=(1,)), log(9), moment(), settings(rules, min_isr=2)) == 0


def a_partition_needs_no_more_than_its_replicas(rules: Rules) -> None:
    assert needed_in_sync(3, 2, rules) == 2


def a_new_leader_does_not_tell_an_end_that_goes_back(rules: Rules) -> None:
    error, _ = latest_offset(leader(epoch_start=6), log(6, committed=4), rules)
    assert error is ErrorCode.OFFSET_NOT_AVAILABLE


RACKS = {1: "b", 2: "a", 3: "a"}


def a_consumer_is_sent_to_a_follower_in_its_rack(rules: Rules) -> None:
    state = leader(follower(2, 9), follower(3, 8))
    assert preferred_replica(state, Offset(8), "a", moment(statuses(racks=RACKS)), rules) == 2


def an_idle_follower_waits_for_a_new_high_watermark(rules: Rules) -> None:
    assert not is_sent_at_once(FetchAnswer(high_watermark=Offset(9)), Offset(8), rules)


def a_consumer_is_not_sent_to_a_fenced_broker(rules: Rules) -> None:
    state = leader(follower(2, 9), follower(3, 8))
    assert preferred_replica(state, Offset(8), "a", moment(statuses(fenced=(2,), racks=RACKS)), rules) == 3


def a_leader_of_an_older_epoch_does_not_change_the_isr(rules: Rules) -> None:
    altered = alter(partition(), request(1, 2, epoch=4), statuses(), settings(rules))
    assert altered.error is ErrorCode.FENCED_LEADER_EPOCH


def a_controller_behind_the_leader_says_so(rules: Rules) -> None:
    altered = alter(partition(), request(1, 2, partition_epoch=8), statuses(), settings(rules))
    assert altered.error is ErrorCode.NOT_CONTROLLER


def an_order_for_a_former_incarnation_is_refused(rules: Rules) -> None:
    assert check_control_request(BrokerEpoch(4), BrokerEpoch(3), rules) is ErrorCode.STALE_BROKER_EPOCH


def an_unclean_leader_recovers_alone(rules: Rules) -> None:
    led = fenced(partition((1,)), BrokerId(1), active(1, 2), settings(rules, unclean=True))
    assert led is not None
    assert (led.leader, led.isr, led.recovering) == (2, ids(2), True)


def a_shrink_interrupts_no_follower(rules: Rules) -> None:
    shrunk = alter(partition(), request(1, 2), statuses(), settings(rules)).partition
    assert (shrunk.isr, shrunk.leader_epoch) == (ids(1, 2), 5)


def of_two_fenced_together_neither_stays(rules: Rules) -> None:
    state = fenced_together(partition(), ids(2, 3), active(1, 2, 3), settings(rules, min_isr=2))
    assert state.isr == ids(1)


def a_fenced_broker_that_reports_has_a_session(rules: Rules) -> None:
    assert has_session(TimeMs(0), fenced=True, rules=rules)


def a_reassignment_to_fewer_waits_for_every_target(rules: Rules) -> None:
    moving = partition((1, 3), replicas=(1, 2, 4, 3, 5), adding=(4,), removing=(3, 5))
    assert alter(moving, request(1, 3, 4), statuses(), settings(rules)).partition.is_reassigning


def a_reassignment_does_not_wait_for_a_kept_replica(rules: Rules) -> None:
    moving = partition((1, 3), replicas=(1, 2, 4, 3), adding=(4,), removing=(3,))
    after = alter(moving, request(1, 3, 4), statuses(), settings(rules)).partition
    assert (after.replicas, after.isr, after.is_reassigning) == (ids(1, 2, 4), ids(1, 4), False)


def who_fell_out_last_may_lead(rules: Rules) -> None:
    shrunk = alter(partition((1, 2)), request(1), statuses(), settings(rules, min_isr=2)).partition
    led = fenced(shrunk, BrokerId(1), active(1, 2, 3), settings(rules, min_isr=2))
    assert led is not None
    assert (led.leader, led.isr) == (2, ids(2))


def an_unclean_stop_ends_eligibility(rules: Rules) -> None:
    after = restarted_uncleanly(partition((1,), elr=(2, 3)), BrokerId(2), active(1, 3), settings(rules, min_isr=2))
    assert after is not None
    assert after.elr == ids(3)


def a_former_replica_is_not_eligible(rules: Rules) -> None:
    state, wanted = partition((1,), elr=(4,)), settings(rules, min_isr=2)
    after = change(state, target_of(state, ids(1), wanted), active(1, 2, 3), wanted)
    assert after is not None
    assert after.elr == ()


def metadata_that_a_leader_knows_keeps_its_request(rules: Rules) -> None:
    pending = propose_expand(leader(isr=(1,)), ids(2)[0], BROKER_EPOCH)
    state = partition((1,))
    known = become_leader(pending, state, log(4), TimeMs(NOW), rules)
    assert known is None
    for other in (partition((1, 3)), partition((1,), replicas=(1, 2))):
        assert become_leader(pending, other, log(4), TimeMs(NOW), rules) is not None


def a_change_of_directories_keeps_who_is_eligible(rules: Rules) -> None:
    assert directories_assigned(partition((1,), elr=(2,)), settings(rules, min_isr=2)).elr == ids(2)


def a_dead_last_leader_is_not_elected(rules: Rules) -> None:
    state = partition((), leader=NOBODY, last_known=(2,))
    assert (
        change(state, target_of(state, (), settings(rules, min_isr=2)), active(1), settings(rules, min_isr=2)) is None
    )


def a_crash_while_starting_is_no_clean_stop(rules: Rules) -> None:
    left = proof_while_loading(StopProof(BrokerEpoch(7)), rules)
    assert not is_clean_registration(left, BrokerStatus(epoch=BrokerEpoch(7)))
