"""Give tests the fixture `kafka_cluster`: simulated clusters for real clients, checked while the test runs.

Example of a test:

    def test_my_consumer(kafka_cluster):
        kafka = kafka_cluster(topics={"orders": 6})
        ...  # clients of kafka.bootstrap_servers
        kafka.kill_leader("orders", 0)

It stands in this package because an import of this one loads no other: pytest loads it in every run of an environment
that has brokerside, and rewrites the asserts of whatever belongs to a distribution with a plugin. Ours are left as they
are: a simulation checks some thousands of them a second.

Source: ours; pytest's entry point `pytest11`, `_mark_plugins_for_rewrite` of pytest 8.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

_OURS: Final = frozenset({"broker", "placement", "log", "replication", "spark_analysis"})
for _finder in sys.meta_path:
    _rewritten = getattr(_finder, "_must_rewrite", None)
    if isinstance(_rewritten, set):
        _rewritten.difference_update(_OURS)


@pytest.fixture
def kafka_cluster() -> Iterator[Callable[..., Any]]:
    """Return a function that starts a cluster, with the arguments of `replication.testing.kafka_cluster`.

    The clusters end with the test, which fails if an invariant of one broke.
    """
    # Late: the wire formats are an extra, and most tests of most people need none.
    from replication.testing import kafka_cluster as started

    with ExitStack() as clusters:
        yield lambda *arguments, **options: clusters.enter_context(started(*arguments, **options))
