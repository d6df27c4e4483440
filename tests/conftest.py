"""What every test run shares: how hard Hypothesis tries, and in which order the tiers run.

Two profiles. `ci`, the default, draws the same examples each time, so that a red run is red
again. `deep`, chosen by `--hypothesis-profile=deep`, draws new ones, many more of them; what it
finds is pinned with `@example`.

The fast tier runs first, then the tests that need Kafka's jars, a browser, Spark: a mistake in
the pure code shows within seconds, and not after the minute that a session costs.

In two processes, `-n 2`, each takes a folder of tests at a time, the one of Spark before all others: it
takes as long as the rest together. So a run still has one Spark session, and one of each JVM with Kafka's classes.
"""

from __future__ import annotations

import signal
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

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

SLOW_TIERS: Final = ("kafka", "browser", "spark")  # In the order in which they run, after the fast tier.

SPARK_FOLDER: Final = "spark_analysis"


def tier(item: pytest.Item) -> int:
    """Place of a test in the run: 0 for the fast tier, else the last of its markers in `SLOW_TIERS`, from 1."""
    return max((index for index, name in enumerate(SLOW_TIERS, 1) if item.get_closest_marker(name)), default=0)


def folder(nodeid: str) -> str:
    """Folder below `tests` that a test belongs to; the module for one that is in none."""
    return nodeid.split("/")[1]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=tier)  # Stable: within a tier the order stays.
    if hasattr(config, "workerinput"):  # One of several processes.
        items.sort(key=lambda item: folder(item.nodeid) != SPARK_FOLDER)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    from xdist.scheduler import LoadScopeScheduling

    class ByFolder(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return folder(nodeid)

    config.option.loadscopereorder = False  # Else the folder with most tests comes first.
    return ByFolder(config, log)
