"""Give tests the fixture `kafka_cluster`: simulated clusters for real clients, checked while the test runs.

Example of a test:

    def test_my_consumer(kafka_cluster):
        kafka = kafka_cluster(topics={"orders": 6})
        ...  # clients of kafka.bootstrap_servers
        kafka.kill_leader("orders", 0)

Source: ours; pytest's entry point `pytest11`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest


@pytest.fixture
def kafka_cluster() -> Iterator[Callable[..., Any]]:
    """Return a function that starts a cluster, with the arguments of `replication.testing.kafka_cluster`.

    The clusters end with the test, which fails if an invariant of one broke.
    """
    # Late: the wire formats are an extra, and most tests of most people need none.
    from replication.testing import kafka_cluster as started

    with ExitStack() as clusters:
        yield lambda *arguments, **options: clusters.enter_context(started(*arguments, **options))
