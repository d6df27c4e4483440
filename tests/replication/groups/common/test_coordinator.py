"""The settings of a coordinator are Kafka's defaults, but for those that a scenario sets; what it refuses it names."""

from __future__ import annotations

import pytest

from broker.group.consumer import ConsumerOptions
from broker.group.offsets import OffsetOptions
from broker.releases import NEWEST, Release
from broker.units import DAY_MS, DurationMs
from replication.groups.shard import service_options


@pytest.mark.parametrize("release", [NEWEST, Release("4.1")])
def test_what_a_scenario_does_not_set_is_kafkas_default_of_the_release(release: Release) -> None:
    options = service_options("uniform", {"t": 1}, 1, release=release)
    assert options.offsets == OffsetOptions()
    assert options.offsets.retention_ms == 7 * DAY_MS, "offsets.retention.minutes is a week by default"
    assert options.context.options == ConsumerOptions(release=release)


def test_a_scenario_sets_how_long_offsets_are_kept_and_the_interval_of_assignments() -> None:
    options = service_options(
        "uniform", {"t": 1}, 1, offsets_retention_ms=DurationMs(5_000), assignment_interval_ms=DurationMs(0)
    )
    assert options.offsets.retention_ms == 5_000
    assert options.context.options.assignment_interval_ms == 0 != ConsumerOptions().assignment_interval_ms
