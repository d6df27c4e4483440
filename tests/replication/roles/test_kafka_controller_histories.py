"""Histories in which our controller differed from Kafka's: each ends as the classes of Kafka 4.3.1 ended it.

`tests.kafka` found and shrank them. What is expected is what the managers of Kafka's controller printed:
the answer to the last step, the brokers (F fenced, U unfenced, S shutting down), and each partition with its replicas,
ISR, leader, leader epoch, partition epoch, ELR, last known leader, added and removed replicas.
"""

from __future__ import annotations

import attrs
import pytest

from broker.ids import BrokerId
from replication.rules.switches import CURRENT, rules_of
from tests.kafka.controller_model import ControllerModel, Step


def joined(broker: int) -> Step:
    """A new process registers, after a clean shutdown if there was one before."""
    return ("register", broker, True, True)


def crashed(broker: int) -> Step:
    """A new process registers, without proof that the one before stopped cleanly."""
    return ("register", broker, True, False)


def again(broker: int) -> Step:
    """The same process registers again."""
    return ("register", broker, False, False)


def beat(broker: int, *, back: int = 0, wants_fence: bool = False, wants_stop: bool = False) -> Step:
    """A broker sends a heartbeat and has read the log as it was `back` steps ago."""
    return ("beat", broker, True, back, wants_fence, wants_stop)


HISTORIES: dict[str, tuple[bool, tuple[Step, ...], str]] = {
    "a_move_to_a_broker_that_is_not_registered_is_refused": (
        False,
        (joined(1), beat(1), ("create", "t0", ((1,),)), ("reassign", 0, (1, 9))),
        "39\n1U \nt0-0 [1] [1] 1 0 0 [] [] [] []",
    ),
    "a_fenced_broker_that_reports_keeps_its_id": (True, (joined(3), beat(3, wants_fence=True), crashed(3)), "101\n3F "),
    "a_broker_that_never_reported_can_be_replaced": (True, (joined(3), crashed(3)), "0\n3F "),
    "a_broker_that_began_to_stop_counts_as_stopping_once_fenced": (
        True,
        (
            joined(2),
            beat(2),
            joined(3),
            beat(3),
            ("create", "t0", ((2,), (3,))),
            beat(2, back=1, wants_stop=True),
            ("tick", 2000),
            ("tick", 8999),
        ),
        "0\n2FS 3F \nt0-0 [2] [] -1 1 1 [2] [2] [] []\nt0-1 [3] [] -1 1 1 [3] [3] [] []",
    ),
    "a_move_that_ends_changes_no_other_partition_of_the_topic_in_the_same_event": (
        True,
        (
            *(step for broker in (1, 2, 3) for step in (joined(broker), beat(broker))),
            ("create", "t0", ((1, 3, 2), (1, 3, 2))),
            ("min_isr", "", 3),
            ("tick", 8999),
            ("reassign", 2, (1,)),
            ("tick", 9001),
            beat(1, back=1),
            crashed(3),
        ),
        "0\n1U 2F 3F \nt0-0 [1] [1] 1 4 6 [2] [] [] []\nt0-1 [1,3,2] [1] 1 3 5 [2] [] [] []",
    ),
    "a_move_asked_for_twice_keeps_who_is_added": (
        False,
        (
            joined(1),
            beat(1),
            joined(2),
            beat(2),
            ("create", "t0", ((1,),)),
            ("reassign", 0, (2,)),
            ("reassign", 0, (2,)),
        ),
        "0\n1U 2U \nt0-0 [2,1] [1] 1 0 1 [] [] [2] [1]",
    ),
    "a_move_that_goes_back_keeps_who_was_removed": (
        False,
        (
            joined(1),
            joined(2),
            joined(3),
            beat(3),
            ("create", "t0", ((3, 2),)),
            ("reassign", 0, (1, 2)),
            ("reassign", 0, (1, 2, 3)),
        ),
        "0\n1F 2F 3U \nt0-0 [1,2,3] [3] 3 0 1 [] [] [1] [3]",
    ),
    "eligible_leaders_are_in_the_order_of_a_hash_set": (
        True,
        (joined(3), beat(3), joined(34), beat(34), ("create", "t0", ((34, 3),)), ("min_isr", "t0", 3), ("tick", 9001)),
        "0\n3F 34F \nt0-0 [34,3] [] -1 1 2 [34,3] [34] [] []",
    ),
    "an_amended_registration_must_be_read_too": (False, (joined(1), again(1), beat(1, back=1)), "0F\n1F "),
    "a_new_controller_forgets_how_far_a_stop_has_come": (
        True,
        (
            joined(2),
            beat(2),
            joined(3),
            beat(3),
            ("create", "t1", ((2,),)),
            beat(2, wants_stop=True),
            ("failover",),
            beat(2, wants_stop=True),
        ),
        "0F!\n2FS 3U \nt1-0 [2] [] -1 1 1 [2] [2] [] []",
    ),
    "a_broker_just_unfenced_counts_as_having_read_nothing": (
        False,
        (
            joined(0),
            joined(1),
            joined(3),
            beat(3),
            joined(4),
            beat(4),
            ("create", "t0", ((3, 0), (4, 3))),
            ("tick", 9001),
            beat(4),
            beat(4, wants_stop=True),
            beat(1),
            beat(4, wants_stop=True),
        ),
        "0US\n0F 1U 3F 4US \nt0-0 [3,0] [3] -1 1 1 [] [] [] []\nt0-1 [4,3] [4] -1 3 4 [] [] [] []",
    ),
    "a_start_of_a_move_elects_nobody_uncleanly": (
        False,
        (
            joined(1),
            beat(1),
            joined(2),
            beat(2),
            ("create", "t0", ((2,),)),
            ("tick", 5000),
            beat(1),
            ("tick", 5000),
            ("unclean", "t0", True),
            ("reassign", 0, (1, 2)),
        ),
        "0\n1U 2F \nt0-0 [1,2] [2] -1 1 2 [] [] [1] []",
    ),
    "an_eligible_broker_that_is_no_replica_fails_the_move": (
        True,
        (
            joined(1),
            joined(2),
            beat(2),
            joined(4),
            beat(4),
            ("create", "t0", ((4, 1, 2),)),
            ("min_isr", "", 3),
            ("reassign", 0, (4,)),
            ("tick", 8999),
            ("tick", 2000),
            beat(2, back=1),
            again(0),
            ("reassign", 0, (0, 4, 1, 2)),
        ),
        "-1\n0F 1F 2U 4F \nt0-0 [4] [] -1 2 2 [2,4] [4] [] []",
    ),
    "the_balance_of_leaders_ends_moves_too": (
        True,
        (
            joined(1),
            joined(2),
            beat(2),
            joined(3),
            beat(3),
            ("create", "t0", ((1, 3, 2),)),
            ("unclean", "t0", True),
            beat(1, back=1),
            ("reassign", 0, (2, 3)),
            ("tick", 9000),
            ("reassign", 0, (3, 2, 1)),
            ("balance",),
            ("balance",),
        ),
        "0\n1U 2F 3F \nt0-0 [3,2,1] [1] 1 3 6 [] [] [] [] recovering",
    ),
    "asking_to_stop_again_fences_again": (
        False,
        (
            joined(1),
            beat(1),
            joined(2),
            beat(2),
            ("create", "t0", ((2,),)),
            ("reassign", 0, (1, 2)),
            beat(2, back=3, wants_fence=True, wants_stop=True),
            ("unclean", "t0", True),
            beat(2, back=3, wants_stop=True),
        ),
        "0F!\n1U 2F \nt0-0 [1,2] [1] 1 2 3 [] [] [1] [] recovering",
    ),
    "a_fenced_broker_that_may_stop_is_not_fenced_again_for_asking": (
        True,
        (
            joined(34),
            joined(1000),
            beat(1000),
            ("create", "t0", ((1000, 34),)),
            ("unclean", "", True),
            beat(34, back=3, wants_stop=True),
            joined(17),
            ("tick", 9000),
            beat(17),
            ("reassign", 0, (34, 17)),
            ("reassign", 0, ()),
            beat(34, back=1, wants_fence=True),
        ),
        "0F\n17U 34F 1000F \nt0-0 [34,1000] [34] -1 2 3 [] [1000] [] []",
    ),
    "the_end_of_a_fenced_brokers_session_fences_again": (
        True,
        (
            joined(1),
            beat(1),
            joined(2),
            ("create", "t0", ((1,),)),
            ("unclean", "", True),
            ("tick", 9001),
            beat(1, back=1, wants_stop=True),
            ("reassign", 0, (2, 1)),
            beat(2, back=1),
            ("reassign", 0, ()),
            ("tick", 9001),
        ),
        "0\n1F 2F \nt0-0 [1] [] -1 3 5 [1] [2] [] [] recovering",
    ),
    "the_first_partition_of_a_topic_bounds_min_isr": (
        True,
        (
            joined(1),
            beat(1),
            joined(2),
            beat(2),
            joined(3),
            beat(3),
            ("create", "t0", ((1,), (2,))),
            ("min_isr", "t0", 3),
            ("reassign", 1, (2, 3)),
            ("alter", 1, 0, True, (0, 0), (0, 2), (0,), False),
            ("alter", 1, 0, True, (0, 0), (0,), (0,), False),
        ),
        "0\n1U 2U 3U \nt0-0 [1] [1] 1 0 0 [] [] [] []\nt0-1 [2,3] [2] 2 0 3 [] [] [] []",
    ),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_ends_as_kafkas(name: str) -> None:
    elr, steps, expected = HISTORIES[name]
    model = ControllerModel(attrs.evolve(CURRENT, elr=elr))
    for step in steps:
        model.take(step)
    assert len(model.steps) == len(steps)
    assert model.answers[-1] == expected


def test_before_4_0_a_fenced_broker_has_no_session() -> None:
    model = ControllerModel(rules_of("3.9"))
    for step in (joined(3), beat(3, wants_fence=True), crashed(3)):
        model.take(step)
    assert model.answers[-1] == "0\n3F "


def test_a_broker_epoch_is_where_the_records_of_its_registration_begin() -> None:
    model = ControllerModel(CURRENT)
    unfenced = (joined(1), beat(1), joined(2), beat(2))
    for step in (*unfenced, ("create", "t0", ((1, 2),)), ("min_isr", "", 2), ("tick", 9_001), crashed(1)):
        model.take(step)
    first = model.role.registrations[BrokerId(1)].epoch
    registered = model.role.session(BrokerId(1)).registered_offset
    assert first + 1 == registered  # One record takes broker 1 out of the ELR.
