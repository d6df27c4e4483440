"""The studies that come with the library.

Machines fail hundreds of times as often as real ones, so that ten minutes show it.

Example: `brokerside study settings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from replication.studies.study import Study

_FAILING: Final = {"mttf_minutes": 3, "repair_seconds": 30, "minutes": 10}

QUORUM: Final = Study(
    name="quorum",
    title="ISR against a majority quorum",
    about="To survive f failures an ISR with min.insync.replicas 1 needs f + 1 replicas, a quorum 2f + 1. A write "
    "waits for all members of the ISR, which a dead one leaves only when its session has ended; of a quorum it waits "
    "for the faster half. A quorum's voter flushes before it answers, a broker does not.",
    seeds=20,
    fixed=_FAILING,
    cases=(
        {"replication": "isr", "factor": 2, "min_isr": 1},
        {"replication": "quorum", "factor": 3},
        {"replication": "isr", "factor": 3, "min_isr": 1},
        {"replication": "isr", "factor": 3, "min_isr": 2},
        {"replication": "quorum", "factor": 5},
    ),
    grid={"failure": ["crash", "power"]},
    measures=("unavailable_share", "lost_share", "latency_p50_ms", "factor"),
)
RESTARTS: Final = Study(
    name="restarts",
    title="Controlled against uncontrolled restarts",
    about="One broker after the other is restarted. In a controlled shutdown it hands its leaders over first and "
    "leaves every ISR at once; killed, it stays leader and in the ISR until its session ends.",
    seeds=20,
    fixed={"brokers": 3, "minutes": 10, "restart_seconds": 60},
    grid={
        "restarts": ["controlled", "uncontrolled"],
        "restart_down_seconds": [5, 20],
        "min_isr": [2, 3],
        "acks": ["all", "1"],
    },
    measures=("unavailable_share", "latency_p99_ms", "lost_share"),
)
SETTINGS: Final = Study(
    name="settings",
    title="Loss and unavailability by settings",
    about="Machines lose power on their own and come back without the end of their logs that was not flushed. What is "
    "acknowledged in the page cache of too few replicas is lost; what waits for more of them is unavailable longer.",
    fixed={"brokers": 3, "failure": "power", **_FAILING},
    grid={
        "acks": ["all", "1"],
        "factor": [2, 3],
        "min_isr": [1, 2],
        "unclean": [False, True],
        "elr": [True, False],
    },
)
STUDIES: Final[Mapping[str, Study]] = {each.name: each for each in (QUORUM, RESTARTS, SETTINGS)}
"""The studies by name."""
