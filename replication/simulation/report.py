"""Report a run: its options and its verdict as lines, the rules that a release lacks, and its smallest plan of faults.

A run that lost records acknowledged with acks=all is never called clean: the line says how many of how many, and names
each election that lost some, with the setting or rule that allowed it. acks=1 promises the leader's log alone.

Source: Zeller, Hildebrandt: Simplifying and Isolating Failure-Inducing Input (2002), the ddmin algorithm of `shrink`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

import attrs

from broker.errors import UsageError
from broker.wording import counted
from replication.rules.switches import CURRENT, SWITCHES, sound
from replication.simulation.fault import Fault
from replication.simulation.options import Options, with_partition_settings
from replication.simulation.plan_file import plan_json
from replication.simulation.run import Outcome

_UNEXPLAINED: Final = "with the ends of their logs, which too many replicas lost"
TRIES_MAX: Final = 200


def options_lines(options: Options) -> list[str]:
    """Return the options of a run as lines to print, the seed first."""
    settings = options.settings
    network, rules = options.network, options.settings.rules
    return [
        f"seed {options.seed}, {options.name}, {options.duration_ms} ms under faults, "
        f"then up to {options.heal_ms_max} ms to become whole",
        f"{counted(options.brokers, 'broker')} in {counted(options.racks, 'rack')}, "
        f"{counted(options.partitions, 'partition')} of "
        f"{counted(options.replication_factor, 'replica')}, min.insync.replicas {settings.min_isr}, "
        f"unclean election {'on' if settings.unclean_election else 'off'}",
        f"{counted(options.producers, 'producer')}, acks {', '.join(map(str, options.acks))}, "
        f"{'idempotent' if options.is_idempotent else 'not idempotent'}, a write every {options.produce_ms} ms; "
        f"{counted(options.consumers, 'consumer')} a partition",
        f"delay up to {network.delay_ms_max} ms; in a thousand: loss {network.loss}, doubled {network.duplicates}, "
        f"late {network.stragglers}; {'in order' if network.is_ordered else 'in any order'}",
        *(() if options.retention is None else (str(options.retention),)),
        "faults: "
        + (", ".join(f"{kind.name.lower()} every {mean_ms} ms" for kind, mean_ms in options.fault_ms) or "none"),
        *(
            ()
            if rules == sound(rules)
            else ("with open weaknesses of Kafka (scenarios S99, S100), by which invariants may break",)
        ),
        "strict: no broker loses records, as without ELR (KIP-966) acknowledged ones would be lost"
        if options.is_strict and not settings.rules.elr
        else "strict: fewer than min.insync.replicas brokers lose records at one time"
        if options.is_strict
        else "not strict: any number of brokers may lose records at one time"
        + ("" if rules.elr else "; what that breaks without ELR (KIP-966) is no finding"),
    ]


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
    parts = [f"{count:,} {f'to the {cause}' if cause else _UNEXPLAINED}" for cause, count in causes.items()]
    verb = "is" if len(lost) == 1 else "are"
    text = f"{len(lost):,} of {counted(report.acked_count, 'record')} acknowledged by all {verb} lost"
    return f"{text}: {'; '.join(parts)}"


def lacking_rules(options: Options, again: Callable[[Options], Outcome]) -> tuple[str, ...]:
    """Return each rule of a later release with which alone a broken run holds; `again` repeats a run."""
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
    """Return one line: a rule missing in a release, its KIP or KAFKA number, and the first release with it."""
    switch = SWITCHES[name]
    return f"Kafka {release} lacks {name} ({switch.source}, {switch.since}): {switch.without}; with it this seed holds"


class Failed(Protocol):
    """Describe a run that failed: its faults, and a name for each of its failures."""

    @property
    def plan(self) -> tuple[Fault, ...]:
        """Return the faults of the run."""

    @property
    def failures(self) -> frozenset[str]:
        """Return a name for each failure; runs that fail alike share one."""


FailedT = TypeVar("FailedT", bound=Failed)


def shrink(failed: FailedT, again: Callable[[tuple[Fault, ...]], FailedT], tries_max: int = TRIES_MAX) -> FailedT:
    """Return the run with the fewest faults found that fails in a way that `failed` did; `again` runs a plan.

    Each try is a whole run, at most `tries_max` of them; one that fails otherwise is no answer.
    """
    assert failed.failures, failed.plan
    found = {failed.plan: failed}

    def breaks(plan: tuple[Fault, ...]) -> bool:
        tried = again(plan)
        if not tried.failures.isdisjoint(failed.failures):
            found[plan] = tried
        return plan in found

    return found[smallest_plan(failed.plan, breaks, tries_max)]


def shrunk_lines(plan: tuple[Fault, ...], fault_count: int) -> list[str]:
    """Return a plan that was shrunk from `fault_count` faults as lines, the last of which is a file for --plan."""
    verb = "is" if len(plan) == 1 else "are"
    enough = f"{len(plan)} of {counted(fault_count, 'fault')} {verb} enough:"
    return [
        f"shrunk: {enough if plan else 'it breaks without any fault'}",
        *(f"  {fault}" for fault in plan),
        "plan, as a file for --plan:",
        plan_json(plan),
    ]


def smallest_plan(
    plan: tuple[Fault, ...], breaks: Callable[[tuple[Fault, ...]], bool], tries_max: int = TRIES_MAX
) -> tuple[Fault, ...]:
    """Return the smallest plan found for which `breaks` holds, as it does for `plan`, in at most `tries_max` tries."""
    part_count, tries = 2, 0
    while plan and tries < tries_max:
        size = max(1, len(plan) // part_count)
        for start in range(0, len(plan), size):
            tries += 1
            tried = plan[:start] + plan[start + size :]
            if breaks(tried):
                plan, part_count = tried, max(2, part_count - 1)
                break
            if tries >= tries_max:
                break
        else:
            if size == 1:
                break
            part_count = min(len(plan), 2 * part_count)
    return plan
