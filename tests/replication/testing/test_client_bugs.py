"""Open bugs of public clients are reproduced by one seed; the same program without the cause recovers."""

from __future__ import annotations

import functools
from typing import Any

import attrs
import pytest

from replication.testing.client_bugs import BUGS, HANGS, ClientBug

FOUND: dict[str, tuple[dict[str, Any], dict[str, bool], dict[str, Any]]] = {
    "aio-libs/aiokafka #1017": (
        {"before": ["", ""], "away": ["LeaderNotAvailableError"] * 4, "after": ["OutOfOrderSequenceNumber"] * 5},
        {"is_idempotent": False},
        {"before": ["", ""], "away": ["LeaderNotAvailableError"] * 4, "after": [""] * 5},
    ),
    "aio-libs/aiokafka #1101": (
        {"before": "", "away": HANGS, "stop": HANGS},
        {"is_idempotent": False},
        {"before": "", "away": "NodeNotReadyError", "stop": ""},
    ),
    "aio-libs/aiokafka #759": (
        {"start": "KafkaConnectionError", "send": HANGS},
        {"is_made_anew": True},
        {"start": "KafkaConnectionError", "send": ""},
    ),
}
"""What each bug shows, what avoids it, and what the same program shows then."""


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.issue)
def test_a_bug_is_seen_and_what_avoids_it_does_not_show_it(bug: ClientBug) -> None:
    shown, avoids, without = FOUND[bug.issue]
    assert bug.run() == shown
    assert attrs.evolve(bug, program=functools.partial(bug.program, **avoids)).run() == without
