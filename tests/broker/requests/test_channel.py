"""A connection's states: all pairs."""

from __future__ import annotations

from itertools import product

import pytest

from broker.errors import UsageError
from broker.machines import step, to_text
from broker.requests.channel import CHANNEL_TRANSITIONS, ChannelInput, ChannelState

PAIRS = list(product(ChannelState, ChannelInput))


@pytest.mark.parametrize(("state", "event"), PAIRS)
def test_every_pair_is_a_row_or_is_refused(state: ChannelState, event: ChannelInput) -> None:
    if (state, event) in CHANNEL_TRANSITIONS:
        assert step(CHANNEL_TRANSITIONS, state, event, what="connection") is CHANNEL_TRANSITIONS[state, event]
    else:
        with pytest.raises(UsageError, match=r"^the connection is .* and cannot take "):
            step(CHANNEL_TRANSITIONS, state, event, what="connection")


def test_the_table_is_this() -> None:
    assert to_text(CHANNEL_TRANSITIONS).splitlines() == [
        "open                            + request received  -> response pending",
        "response pending                + response sent     -> open",
        "response pending                + throttle started  -> throttled and response pending",
        "throttled                       + throttle ended    -> open",
        "throttled and response pending  + response sent     -> throttled",
        "throttled and response pending  + throttle ended    -> response pending",
    ]
