"""Find out which rule of a later release would have kept a broken run from breaking.

What it decides: which single switch, off in the rules of the run and on in the newest release, makes the same seed hold
under the same faults.

Constraints: each try is a whole run. Another rule may change what happens before the break, so that a name here is a
strong hint and no proof; where two rules are needed together, none is found.

Example: a leader of 2.8 counts the end of a log that differs from its own; with `diverging_fetch_ignored`
(KAFKA-13141, 3.0) the seed holds.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from broker.errors import UsageError
from replication.rules.switches import CURRENT, SWITCHES
from replication.simulation.options import Options, with_partition_settings
from replication.simulation.run import Outcome


def lacking_rules(options: Options, again: Callable[[Options], Outcome]) -> tuple[str, ...]:
    """Return each switch of a later release that mends a broken run by itself; `again` repeats a run."""
    rules = options.settings.rules
    missing = [name for name in SWITCHES if getattr(CURRENT, name) and not getattr(rules, name)]
    return tuple(name for name in missing if _holds(options, name, again))


def _holds(options: Options, name: str, again: Callable[[Options], Outcome]) -> bool:
    """Return whether a run is not broken with one more switch on."""
    on: dict[str, Any] = {name: True}
    settings = options.settings
    try:
        changed = with_partition_settings(options, attrs.evolve(settings, rules=attrs.evolve(settings.rules, **on)))
    except UsageError:
        return False  # A rule that ZooKeeper mode never had.
    return not again(changed).is_broken


def lacking_line(release: str, name: str) -> str:
    """Return one line: the rule that a release lacks, its KIP or KAFKA number, and the release that has it."""
    switch = SWITCHES[name]
    return f"Kafka {release} lacks {name} ({switch.source}, {switch.since}): {switch.without}; with it this seed holds"
