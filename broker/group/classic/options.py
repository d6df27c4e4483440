"""Hold the broker's settings for classic groups.

Source: GroupCoordinatorConfig, Kafka 4.0.
"""

from __future__ import annotations

import attrs

from broker.config.settings import Settings
from broker.units import DurationMs


@attrs.frozen(kw_only=True)
class ClassicOptions:
    """Hold the broker's settings for classic groups; the defaults are Kafka's."""

    size_max: int = 2**31 - 1
    initial_delay_ms: DurationMs = attrs.field(default=DurationMs(3000))
    session_timeout_ms_min: DurationMs = attrs.field(default=DurationMs(6000))
    session_timeout_ms_max: DurationMs = attrs.field(default=DurationMs(1_800_000))

    @classmethod
    def of(cls, settings: Settings) -> ClassicOptions:
        """Return the options set by a broker's settings."""
        return cls(
            size_max=settings.count("group.max.size"),
            initial_delay_ms=settings.duration_ms("group.initial.rebalance.delay.ms"),
            session_timeout_ms_min=settings.duration_ms("group.min.session.timeout.ms"),
            session_timeout_ms_max=settings.duration_ms("group.max.session.timeout.ms"),
        )
