"""Decide when a broker reads from a connection: one request at a time per connection.

Source: org.apache.kafka.common.network.KafkaChannel.ChannelMuteState, 4.0.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class ChannelState(enum.Enum):
    """List the states of a connection: whether the broker reads from it, and why not."""

    OPEN = enum.auto()
    """The next request is read when it is there."""

    RESPONSE_PENDING = enum.auto()
    """Muted: a request of this connection is being worked on."""

    THROTTLED = enum.auto()
    """Muted: the client is over its quota."""

    THROTTLED_AND_RESPONSE_PENDING = enum.auto()
    """Muted for both."""


class ChannelInput(enum.Enum):
    """List the events on a connection."""

    REQUEST_RECEIVED = enum.auto()
    """A whole request has been read."""

    RESPONSE_SENT = enum.auto()
    """The response has left, or the request had none (acks=0)."""

    THROTTLE_STARTED = enum.auto()
    """The handler found the client over its quota."""

    THROTTLE_ENDED = enum.auto()
    """The throttle time is over."""


CHANNEL_TRANSITIONS: Final[Mapping[tuple[ChannelState, ChannelInput], ChannelState]] = MappingProxyType(
    {
        (ChannelState.OPEN, ChannelInput.REQUEST_RECEIVED): ChannelState.RESPONSE_PENDING,
        (ChannelState.RESPONSE_PENDING, ChannelInput.RESPONSE_SENT): ChannelState.OPEN,
        (ChannelState.RESPONSE_PENDING, ChannelInput.THROTTLE_STARTED): ChannelState.THROTTLED_AND_RESPONSE_PENDING,
        (ChannelState.THROTTLED_AND_RESPONSE_PENDING, ChannelInput.RESPONSE_SENT): ChannelState.THROTTLED,
        (ChannelState.THROTTLED_AND_RESPONSE_PENDING, ChannelInput.THROTTLE_ENDED): ChannelState.RESPONSE_PENDING,
        (ChannelState.THROTTLED, ChannelInput.THROTTLE_ENDED): ChannelState.OPEN,
    }
)
"""Every step that a connection can take; whatever is not here is refused."""
