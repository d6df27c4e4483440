"""The verdict of a run in one line, and the rule of a later release that would have kept a broken run from breaking.

A run that lost records acknowledged with acks=all is never called clean: the line says how many of how many, and names
each election that lost some, with the setting or rule that allowed it. acks=1 promises the leader's log alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs

from broker.errors import UsageError
from broker.wording import counted
from replication.rules.switches import CURRENT, SWITCHES
from replication.simulation.options import Options, with_partition_settings
from replication.simulation.run import Outcome

UNEXPLAINED = "with the ends of their logs, which too many replicas lost"


def verdict_line(outcome: Outcome) -> str:
    """Return the verdict of a run in one line."""
    lost = lost_text(outcome)
    if outcome.is_broken:
        return f"BROKEN: {outcome.findings[0]}" + (f"; and {lost}" if lost else "")
    return f"nothing is broken, but {lost}" if lost else "nothing is broken"


def lost_text(outcome: Outcome) -> str:
    """Return what was lost of the records acknowledged with acks=all, by election; "" if nothing was."""
    report = outcome.durability
    lost = report.lost_by_all
    if not lost:
        return ""
    causes = Counter(record.cause for record in lost)
    parts = [f"{count:,} {f'to the {cause}' if cause else UNEXPLAINED}" for cause, count in causes.items()]
    verb = "is" if len(lost) == 1 else "are"
    text = f"{len(lost):,} of {counted(report.acked_count, 'record')} acknowledged by all {verb} lost"
    return f"{text}: {'; '.join(parts)}"


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
