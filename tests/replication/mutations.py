"""The table of mutations: each rule, and the fact that no longer holds once the rule is turned off.

`python -m tests.replication.mutations` prints it and checks every row: the fact holds under current rules and fails
without its rule. A rule without a fact is a row that fails, here and in `test_mutations`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Final

from replication.rules.switches import CURRENT, SWITCHES, Rules
from tests.replication import facts
from tests.replication.builders import on

Fact = Callable[[Rules], None]

FACTS: Final[Mapping[str, Fact]] = {
    "fetch_epoch_check": facts.a_fetch_of_an_older_epoch_is_fenced,
    "truncation_epoch_check": facts.a_question_about_epochs_from_another_epoch_is_not_answered,
    "epoch_cached_on_election": facts.a_leader_without_records_knows_where_its_epoch_starts,
    "epoch_cache_always_trimmed": facts.a_cut_at_the_end_still_drops_epochs_without_records,
    "diverging_below_start_refused": facts.a_fetch_below_the_start_is_out_of_range_though_logs_part,
    "diverging_fetch_ignored": facts.the_end_of_a_log_that_parts_is_not_counted,
    "truncate_before_high_watermark": facts.a_follower_cuts_before_it_raises_its_high_watermark,
    "high_watermark_follows_full_truncation": facts.a_log_that_starts_anew_is_committed_up_to_its_start,
    "topic_id_check": facts.a_topic_created_anew_is_not_the_old_one,
    "caught_up_at_end_offset": facts.a_silent_follower_that_has_everything_stays,
    "isr_join_epoch_start": facts.nobody_joins_before_the_start_of_the_epoch,
    "isr_join_epoch_check": facts.nobody_joins_for_a_fetch_of_an_older_epoch,
    "isr_join_eligibility": facts.a_fenced_broker_does_not_join,
    "isr_join_broker_epoch": facts.a_restarted_broker_does_not_join_for_what_it_held,
    "isr_join_caught_up_under_min_isr": facts.under_min_isr_only_who_is_caught_up_joins,
    "high_watermark_epoch_check": facts.followers_of_an_older_epoch_do_not_commit,
    "maximal_isr": facts.a_change_of_the_isr_that_is_not_confirmed_commits_nothing,
    "high_watermark_ignores_ineligible": facts.a_stopping_follower_outside_the_isr_holds_nothing_up,
    "strict_min_isr": facts.under_min_isr_nothing_is_committed,
    "effective_min_isr": facts.a_partition_needs_no_more_than_its_replicas,
    "offset_not_available": facts.a_new_leader_does_not_tell_an_end_that_goes_back,
    "follower_reads": facts.a_consumer_is_sent_to_a_follower_in_its_rack,
    "new_high_watermark_waits": facts.an_idle_follower_waits_for_a_new_high_watermark,
    "fenced_never_preferred": facts.a_consumer_is_not_sent_to_a_fenced_broker,
    "isr_write_epoch_check": facts.a_leader_of_an_older_epoch_does_not_change_the_isr,
    "isr_write_ahead_refused": facts.a_controller_behind_the_leader_says_so,
    "control_request_broker_epoch": facts.an_order_for_a_former_incarnation_is_refused,
    "fenced_broker_has_session": facts.a_fenced_broker_that_reports_has_a_session,
    "known_state_keeps_request": facts.metadata_that_a_leader_knows_keeps_its_request,
    "leader_recovery_state": facts.an_unclean_leader_recovers_alone,
    "isr_shrink_keeps_leader_epoch": facts.a_shrink_interrupts_no_follower,
    "fence_one_at_a_time": facts.of_two_fenced_together_neither_stays,
    "reassignment_needs_all_targets": facts.a_reassignment_to_fewer_waits_for_every_target,
    "reassignment_ignores_kept": facts.a_reassignment_does_not_wait_for_a_kept_replica,
    "elr": facts.who_fell_out_last_may_lead,
    "elr_excludes_unclean": facts.an_unclean_stop_ends_eligibility,
    "elr_holds_replicas_only": facts.a_former_replica_is_not_eligible,
    "elr_kept_by_every_change": facts.a_change_of_directories_keeps_who_is_eligible,
    "last_known_leader_alive": facts.a_dead_last_leader_is_not_elected,
    "clean_marker_removed_first": facts.a_crash_while_starting_is_no_clean_stop,
}


def holds(name: str, *, turned_on: bool) -> bool:
    """Whether the fact of a rule is true under current rules with that rule turned on or off."""
    try:
        FACTS[name](on(CURRENT, **{name: turned_on}))
    except AssertionError:
        return False
    return True


def main() -> int:
    caught = 0
    for name in SWITCHES:
        fact = FACTS.get(name)
        seen = fact is not None and holds(name, turned_on=True) and not holds(name, turned_on=False)
        caught += seen
        told = "no fact" if fact is None else fact.__name__.replace("_", " ")
        print(f"{name:<40} {'caught' if seen else 'NOT CAUGHT':<11} {told}")
    print(f"{caught} of {len(SWITCHES)} rules turned off are caught")
    return 0 if caught == len(SWITCHES) else 1


if __name__ == "__main__":
    sys.exit(main())
