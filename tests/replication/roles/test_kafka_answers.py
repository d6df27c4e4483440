"""Every recorded answer of Kafka's own controller and log is ours: 1,000 histories and 80 programs, drawn at random."""

from __future__ import annotations

import pytest

from tests.replication.roles.kafka_answers import (
    HISTORIES_A_RUN,
    HISTORY_COUNT,
    PROGRAM_COUNT,
    PROGRAMS_A_RUN,
    controller_noticed,
    program_noticed,
)

PARTS = 10


@pytest.mark.parametrize("part", range(PARTS))
def test_a_controller_answers_as_that_of_kafka(part: int) -> None:
    """ReplicationControlManager and PartitionChangeBuilder, 4.3.1."""
    runs = range(part, -(-HISTORY_COUNT // HISTORIES_A_RUN), PARTS)
    assert [told for run in runs if (told := controller_noticed(run))] == []


def test_a_log_answers_as_that_of_kafka() -> None:
    """UnifiedLog, 4.3.1."""
    assert [told for run in range(-(-PROGRAM_COUNT // PROGRAMS_A_RUN)) if (told := program_noticed(run))] == []
