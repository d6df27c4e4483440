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

pytest_plugins = ("pytester",)
"""Runs pytest on the tests of a user, for the fixture that we ship."""

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


SHARED_PROCESS: Final = ("tests/spark_analysis/", "tests/kafka/")
"""Folders whose tests share a JVM: each folder runs in one process, and begins first, as it takes longest."""
OWN_PROCESS: Final = ("tests/spark_analysis/cli/test_hostile_inputs.py",)
"""Files of those folders that start no JVM and take minutes: they run beside the folder."""
DEEP_MARKERS: Final = ("kafka", "browser")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    for item in items:
        if any(item.get_closest_marker(name) for name in DEEP_MARKERS):
            item.add_marker(pytest.mark.deep)
    yield  # Other conftests mark what starts Spark; pytest leaves out the other tier.
    # In one process a mistake in pure code shows before the minute that a session costs; in two the long part begins.
    # The tests on the one session follow each other, behind commands that start and end a Spark of their own.
    first = hasattr(config, "workerinput")
    items.sort(key=lambda item: (item.nodeid.startswith(SHARED_PROCESS) != first, has_session(item)))


def has_session(item: pytest.Item) -> bool:
    """Whether a test is marked as one on the run's Spark session."""
    return item.get_closest_marker("spark") is not None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            """Return what shares a process: a file, or a folder whose tests share a JVM."""
            file = nodeid.split("::")[0]
            return file if file in OWN_PROCESS else next((f for f in SHARED_PROCESS if file.startswith(f)), file)

    config.option.loadscopereorder = False  # Else the file with most tests comes first.
    return ByFile(config, log)
