"""Show the impact of a plan as tables for the terminal: findings, brokers, states and measures before and after."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from broker.cli import printable
from broker.units import format_seconds, format_size
from placement.planning.completion import runs_either
from placement.planning.findings import Finding
from placement.planning.impact import Impact, States
from placement.planning.impact_tables import batch_row, brokers_table
from spark_analysis.cli.cluster_inputs import shown_table
from spark_analysis.report.figures import UNKNOWN, count, decimal, plural

BROKERS_SHOWN_MAX: Final = 40
BATCHES_SHOWN_MAX: Final = 32
_MEASURES_SHOWN: Final = ("max_over_mean", "cv", "moves")
_SCOPES: Final = {
    "brokers": "a broker",
    "pairs": "two brokers",
    "racks": "a rack",
    "racks_and_brokers": "rack + broker",
}
_STATES: Final = {
    "leaderless_count": "leaderless",
    "under_min_isr_count": "under min-ISR",
    "at_risk_count": "data at risk",
}


def impact_shown(
    impact: Impact,
    found: Sequence[Finding],
    worst: Sequence[dict[str, Any]],
    measured: Sequence[dict[str, Any]],
) -> Iterator[RenderableType]:
    """Yield what the terminal shows of an impact, the verdict first."""
    yield Text(printable(_verdict(impact, found)))
    yield from _heading(impact)
    for finding in found:
        yield Text(printable(f"{'! ' if finding.is_bad else '- '}{finding.sentence}"))
    yield Text()
    if len(impact.batches) > 1:
        yield from _batches(impact)
    yield from _brokers(impact)
    yield from _directories(impact)
    yield _before_and_after(impact, worst, measured)


def _verdict(impact: Impact, found: Sequence[Finding]) -> str:
    """Return whether something speaks against the plan, and what it does to partitions under min-ISR."""
    bad = sum(finding.is_bad for finding in found)
    under = impact.under_min_isr
    known = under.before is not None
    states = f"; under min-ISR {_known(under.before)} before, {_known(under.after)} after" if known else ""
    marked = f"{plural(bad, 'finding')} against this plan, marked with !"
    return f"{marked if bad else 'Nothing speaks against this plan'}{states}"


def _heading(impact: Impact) -> Iterator[RenderableType]:
    first = impact.batches
    changed = sum(batch.partition_count for batch in first)
    only = sum(batch.order_only_count for batch in first)
    moved = UNKNOWN if impact.moved_bytes is None else format_size(impact.moved_bytes)
    least = "" if impact.seconds == math.inf else "at least "
    time = f", {least}{format_seconds(impact.seconds)}" if impact.seconds and impact.moved_replicas else ""
    lines = [
        f"{impact.before.name}: changes {plural(changed, 'partition')}, {count(only)} of them only in order; "
        f"{plural(impact.moved_replicas, 'new replica')}, {moved} to copy{time}"
    ]
    inside = impact.directories
    if inside.copies:
        lines.append(
            f"Between log directories of a broker: {plural(len(inside.copies), 'replica')}, "
            f"{_size(inside.size_bytes)} copied inside brokers, at --replica-alter-log-dirs-throttle if it is set."
        )
    if impact.moved_bytes is None:
        known, unknown = impact.known_bytes
        rest = f" of {plural(unknown, 'new replica')}; the others copy {format_size(known)}" if known else ""
        lines.append(f"Sizes are unknown{rest}. --sizes gives them.")
    if not impact.has_links and impact.moved_replicas:
        lines.append("Times are not known without --throttle, or a network's capacity in --capacity.")
    if runs_either(impact.release):
        whose = "ZooKeeper's controller" if impact.zookeeper else "KRaft's controller (--zookeeper for the other)"
        lines.append(f"Kafka {impact.release} runs with ZooKeeper or KRaft; this is the answer of {whose}.")
    for line in lines:
        yield Text(printable(line))


def _batches(impact: Impact) -> Iterator[RenderableType]:
    rows = [batch_row(number, batch) for number, batch in enumerate(impact.batches, start=1)]
    yield shown_table(
        "Batches, in this order",
        ("batch", "partitions", "new\nreplicas", "bytes", "leader\nchanges", "elections", "blocked", "at least"),
        [
            (
                str(row["batch"]),
                count(row["partition_count"]),
                count(row["moved_replica_count"]),
                _size(row["moved_bytes"]),
                count(row["leader_change_count"]),
                count(row["election_count"]),
                count(row["blocked_count"]),
                _time(row),
            )
            for row in rows[:BATCHES_SHOWN_MAX]
        ],
    )
    if len(rows) > BATCHES_SHOWN_MAX:
        yield Text(f"and {count(len(rows) - BATCHES_SHOWN_MAX)} more batches; --out writes them all")
    yield Text()


def _time(row: dict[str, Any]) -> str:
    seconds = math.inf if row["never_ends"] else row["seconds"]
    return UNKNOWN if seconds is None else format_seconds(seconds)


def _brokers(impact: Impact) -> Iterator[RenderableType]:
    rows = [row for row in brokers_table(impact).to_pylist() if _changes(row)]
    if not rows:
        yield Text("No broker gains or loses a replica or a known leader.")
        yield Text()
        return
    rows.sort(key=lambda row: (-(row["replica_count_in"] + row["replica_count_gone"]), row["broker_id"]))
    columns: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
        ("broker", lambda row: str(row["broker_id"])),
        ("replicas", lambda row: count(row["replica_count_before"])),
        ("+", lambda row: count(row["replica_count_in"])),
        ("-", lambda row: count(row["replica_count_gone"])),
        ("after", lambda row: count(row["replica_count_after"])),
        ("leaders", lambda row: _known(row["leader_count_before"])),
        ("done", lambda row: _known(row["leader_count_done"])),
        ("elected", lambda row: _known(row["leader_count_after"])),
        ("bytes in", lambda row: _size(row["bytes_in"])),
        ("bytes out", lambda row: _size(row["bytes_out"])),
        ("disk", lambda row: _size(row["size_bytes_before"])),
        ("peak", lambda row: _size(row["size_bytes_peak"])),
        ("after", lambda row: _size(row["size_bytes_after"])),
    )
    shown = columns if impact.moved_bytes is not None else columns[:8]
    yield shown_table(
        "Brokers with a change, most moves first"
        + (" (out: as the leader that is copied from)" if shown is columns else ""),
        [title for title, _ in shown],
        [[text(row) for _, text in shown] for row in rows[:BROKERS_SHOWN_MAX]],
    )
    if len(rows) > BROKERS_SHOWN_MAX:
        yield Text(f"and {count(len(rows) - BROKERS_SHOWN_MAX)} more brokers; --out writes them all")
    yield Text()


def _directories(impact: Impact) -> Iterator[RenderableType]:
    rows = list(impact.directories.rows(impact.before))
    if rows:
        yield shown_table(
            "Log directories, copied inside their broker",
            ("directory", "replicas +", "-", "bytes in", "bytes out", "before"),
            [
                (
                    f"{row['broker_id']} {row['log_dir']}",
                    *(_known(row[name]) for name in ("replica_count_in", "replica_count_out")),
                    *(_size(row[name]) for name in ("bytes_in", "bytes_out", "size_bytes_before")),
                )
                for row in rows[:BROKERS_SHOWN_MAX]
            ],
        )
        if len(rows) > BROKERS_SHOWN_MAX:
            yield Text(f"and {count(len(rows) - BROKERS_SHOWN_MAX)} more directories; --out writes them all")
        yield Text()


def _changes(row: dict[str, Any]) -> bool:
    """Return whether a broker gains or loses anything, or is copied from."""
    leads = {row["leader_count_before"], row["leader_count_done"], row["leader_count_after"]}
    return bool(row["replica_count_in"] or row["replica_count_gone"] or row["bytes_out"] or len(leads) > 1)


def _before_and_after(
    impact: Impact, worst: Sequence[dict[str, Any]], measured: Sequence[dict[str, Any]]
) -> RenderableType:
    rows = [
        _state_row("partitions under min-ISR", impact.under_min_isr),
        _state_row("partitions on fewer racks than could be", impact.fewer_racks),
    ]
    for each in measured:
        if each["measure"] in _MEASURES_SHOWN and each["scope"] != "topic":
            name = f"{each['quantity']} by {each['scope']}: {each['measure'].replace('_', ' ')}"
            is_count = each["measure"] == "moves"
            before, after = (
                UNKNOWN if value is None else count(round(value)) if is_count else decimal(value)
                for value in (each["before"], each["after"])
            )
            rows.append((name, before, "", after))
    for each in worst:
        name = f"{_STATES[each['state']]} if the worst of {_SCOPES[each['scope']]} is lost"
        rows.append((name, count(each["before"]), "", count(each["after"])))
    changed = [row for row in rows if len({*row[1:]} - {""}) > 1]
    if not changed:
        return Text("No state or measure changes.")
    return shown_table("What changes (--json has all)", ("", "before", "on the way", "after"), changed)


def _state_row(name: str, states: States) -> tuple[str, str, str, str]:
    return (name, _known(states.before), _known(states.during), _known(states.after))


def _known(value: int | None) -> str:
    return UNKNOWN if value is None else count(value)


def _size(value: int | None) -> str:
    return UNKNOWN if value is None else format_size(value)
