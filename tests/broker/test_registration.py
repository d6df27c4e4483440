"""A broker's life: the tables are complete, what they do not list is refused, and no two processes share an id."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from click.testing import CliRunner

from broker.__main__ import cli
from broker.errors import UsageError
from broker.ids import BrokerEpoch, BrokerId
from broker.machines import to_dot, to_mermaid, to_text, word
from broker.registration import (
    BROKER_TRANSITIONS,
    SESSION_STATES,
    ZOOKEEPER_TRANSITIONS,
    BrokerInput,
    BrokerState,
    DuplicateBrokerRegistrationError,
    Heartbeat,
    Registration,
    ZookeeperInput,
    ZookeeperState,
    broker_step,
    heartbeat_input,
    register,
    zookeeper_step,
)

S, E = BrokerState, BrokerInput
SHUTDOWNS = (
    E.HEARTBEAT_WANTS_SHUTDOWN_LEADING,
    E.HEARTBEAT_WANTS_SHUTDOWN_WAITING,
    E.HEARTBEAT_WANTS_SHUTDOWN_READY,
)


def kafka_heartbeat(
    state: BrokerState, heartbeat: Heartbeat, *, registration_offset: int, leads: bool, shutdown_seen_by_all: bool
) -> BrokerState:
    """BrokerHeartbeatManager.calculateNextBrokerState as nested questions, for comparison with the table."""
    if state is S.CONTROLLED_SHUTDOWN:
        return S.SHUTDOWN_NOW if not leads and shutdown_seen_by_all else S.CONTROLLED_SHUTDOWN
    if state is S.UNFENCED:
        if heartbeat.want_fence:
            return S.SHUTDOWN_NOW if heartbeat.want_shutdown else S.FENCED
        if heartbeat.want_shutdown:
            return S.CONTROLLED_SHUTDOWN if leads else S.SHUTDOWN_NOW
        return S.UNFENCED
    if heartbeat.want_shutdown:
        return S.SHUTDOWN_NOW
    ready = not heartbeat.want_fence and heartbeat.metadata_offset >= registration_offset
    return S.UNFENCED if ready else S.FENCED


def test_a_heartbeat_does_what_kafkas_controller_does() -> None:
    states, flags = (S.FENCED, S.UNFENCED, S.CONTROLLED_SHUTDOWN, S.SHUTDOWN_NOW), (False, True)
    for state, fence, shutdown, offset, leads, seen in itertools.product(states, flags, flags, range(3), flags, flags):
        heartbeat = Heartbeat(metadata_offset=offset, want_fence=fence, want_shutdown=shutdown)
        event = heartbeat_input(heartbeat, registration_offset=1, leads=leads, shutdown_seen_by_all=seen)
        if (state, event) not in BROKER_TRANSITIONS:
            # A broker in controlled shutdown repeats exactly that wish; nothing else is ever sent.
            assert state is S.CONTROLLED_SHUTDOWN
            assert fence or not shutdown
            continue
        wanted = kafka_heartbeat(state, heartbeat, registration_offset=1, leads=leads, shutdown_seen_by_all=seen)
        assert broker_step(state, event) is wanted


def test_these_pairs_and_no_others_are_refused() -> None:
    refused = {pair for pair in itertools.product(S, E) if pair not in BROKER_TRANSITIONS}
    unregistered = {(S.UNREGISTERED, event) for event in E if event is not E.REGISTER_NEW_INCARNATION}
    without_session = {(state, E.SESSION_EXPIRED) for state in (S.FENCED, S.SHUTDOWN_NOW)}
    held = {(state, E.REGISTER_NEW_INCARNATION) for state in SESSION_STATES}
    never_sent = {
        (S.CONTROLLED_SHUTDOWN, event) for event in E if event.name.startswith("HEARTBEAT") and event not in SHUTDOWNS
    }
    assert refused == unregistered | without_session | held | never_sent


@pytest.mark.parametrize(
    ("table", "states", "inputs", "take", "what"),
    [
        (BROKER_TRANSITIONS, S, E, broker_step, "broker"),
        (ZOOKEEPER_TRANSITIONS, ZookeeperState, ZookeeperInput, zookeeper_step, "broker node"),
    ],
)
def test_every_pair_steps_as_listed_or_is_refused_by_name(
    table: Any, states: Any, inputs: Any, take: Any, what: str
) -> None:
    for state, event in itertools.product(states, inputs):
        if (state, event) in table:
            assert take(state, event) is table[state, event]
            continue
        with pytest.raises(UsageError, match=f"^the {what} is {word(state)} and cannot take {word(event)}$"):
            take(state, event)


def registration(state: BrokerState = S.UNFENCED) -> Registration:
    return Registration(broker_id=BrokerId(1), incarnation_id="first", epoch=BrokerEpoch(10), state=state)


def again(existing: Registration | None, incarnation_id: str, *, session_valid: bool) -> Registration:
    return register(
        existing,
        broker_id=BrokerId(1),
        incarnation_id=incarnation_id,
        record_offset=50,
        session_valid=session_valid,
    )


@pytest.mark.parametrize("state", [S.FENCED, S.UNFENCED, S.CONTROLLED_SHUTDOWN])
def test_the_same_incarnation_keeps_state_and_epoch(state: BrokerState) -> None:
    assert again(registration(state), "first", session_valid=True) == registration(state)


@pytest.mark.parametrize("state", sorted(SESSION_STATES, key=lambda state: state.name))
def test_another_incarnation_waits_until_the_session_has_ended(state: BrokerState) -> None:
    with pytest.raises(DuplicateBrokerRegistrationError) as caught:
        again(registration(state), "second", session_valid=True)
    assert str(caught.value) == "Another broker is registered with that broker id."
    assert caught.value.broker_id == 1
    assert caught.value.kafka_class == "org.apache.kafka.common.errors.DuplicateBrokerRegistrationException"
    after = again(registration(state), "second", session_valid=False)
    assert (after.incarnation_id, after.epoch, after.state) == ("second", 50, S.FENCED)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], to_text(BROKER_TRANSITIONS)),
        (["zookeeper"], to_text(ZOOKEEPER_TRANSITIONS)),
        (["--format", "mermaid"], to_mermaid(BROKER_TRANSITIONS)),
        (["zookeeper", "--format", "mermaid"], to_mermaid(ZOOKEEPER_TRANSITIONS)),
        (["--format", "dot"], to_dot(BROKER_TRANSITIONS)),
    ],
)
def test_the_command_draws_the_table_that_the_model_runs_on(arguments: list[str], expected: str) -> None:
    done = CliRunner().invoke(cli, ["diagram", *arguments])
    assert (done.exit_code, done.output) == (0, expected + "\n")


def test_a_graphviz_arrow_is_labelled_with_its_inputs() -> None:
    arrow = '    "controlled shutdown" -> "fenced" [label="heartbeat caught up, session expired"];'
    table = {(S.CONTROLLED_SHUTDOWN, event): S.FENCED for event in (E.SESSION_EXPIRED, E.HEARTBEAT_CAUGHT_UP)}
    assert to_dot(table).splitlines() == ["digraph {", "    node [shape=box];", arrow, "}"]
