"""Profiles of Hypothesis, the two tiers of tests, and which process runs which tests.

Two profiles. `ci`, the default, draws the same examples each time, so that a red run is red again. `deep`, chosen by
`--hypothesis-profile=deep`, draws new ones, many more of them; what it finds is pinned with `@example`.

Two tiers. Without a marker pytest runs the fast tier, with `-m deep` the rest. What needs Kafka's jars or a browser
is deep.

In two processes, `-n 2`, the tests of a file stay together, and all those that share the Spark session, or Kafka's
classes in one JVM, run in one process: a run has one Spark session.
"""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterator
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

from broker.compiled import INTERPRETED_ACCESSES_MAX, interpreted_at_most

# No deadlines: the machines that run this are shared, and time is measured in tests/benchmarks.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile(
    "deep",
    max_examples=2_000,
    deadline=None,
    print_blob=True,
    # With thousands of examples some are drawn slowly; that is no news.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")

# A run in a shell's background inherits an ignored SIGINT, and so would each process that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=["interpreted", pytest.param("compiled", marks=pytest.mark.deep)])
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test of kernels with small inputs, which are interpreted, and in the deep tier as machine code too."""
    with interpreted_at_most(-1 if request.param == "compiled" else INTERPRETED_ACCESSES_MAX):
        yield


SHARED_PROCESS: Final = ("spark", "kafka")  # What starts a JVM; each starts once, and in one process, begun first.
DEEP_MARKERS: Final = ("kafka", "browser")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    for item in items:
        if any(item.get_closest_marker(name) for name in DEEP_MARKERS):
            item.add_marker(pytest.mark.deep)
    yield  # Other conftests mark what starts Spark; pytest leaves out the other tier.
    if hasattr(config, "workerinput"):  # One of several processes: what shares a JVM begins first, as it takes longest.
        for item in items:
            for name in SHARED_PROCESS:
                if item.get_closest_marker(name):
                    item._nodeid = f"{item.nodeid}@{name}"  # The scheduler sees no more; xdist's groups do the same.
        items.sort(key=lambda item: _shared_process(item.nodeid) is None)
    else:  # A mistake in pure code shows before the minute that a session costs.
        items.sort(key=lambda item: any(item.get_closest_marker(name) for name in SHARED_PROCESS))


def _shared_process(nodeid: str) -> str | None:
    """Return the name of the JVM that a test shares, which workers append to its node id."""
    name = nodeid.rpartition("@")[2]
    return name if name in SHARED_PROCESS else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            """Return what shares a process: a file, or all tests that share a JVM."""
            return _shared_process(nodeid) or nodeid.split("::")[0]

    config.option.loadscopereorder = False  # Else the file with most tests comes first.
    return ByFile(config, log)
