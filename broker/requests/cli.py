"""`brokerside requests`: measure what a broker's threads and queues do under load.

Prints one column a load: latency percentiles, idle ratios, queue lengths. With --json, everything measured.

Source: ours; the words are those of Kafka's metrics.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import click
from rich.console import Console
from rich.table import Table

from broker.config.setting import Scope
from broker.config.settings import Settings
from broker.entropy import SplitMix64, derive
from broker.requests.measures import PHASES, PathReport
from broker.requests.options import REQUEST_KINDS, Load, RequestPathOptions, capacity_per_second
from broker.requests.reactor import RequestPath
from broker.units import DurationMs

LOADS_DEFAULT: Final = (25, 50, 75, 90, 100, 110)
_POSITIVE: Final = click.IntRange(min=1)


@click.command(name="requests")
@click.option(
    "--load", "loads", type=click.IntRange(1, 1000), multiple=True, default=LOADS_DEFAULT, show_default=True,
    metavar="PERCENT", help="Load, in percent of what the threads can carry; may be given several times.",
)  # fmt: skip
@click.option("--rate", "rates", type=_POSITIVE, multiple=True, help="Requests a second, instead of --load.")
@click.option("--seconds", type=click.IntRange(1, 3600), default=2, show_default=True, help="Simulated time of a run.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same run.")
@click.option("--connections", type=_POSITIVE, default=1000, show_default=True, help="Clients' connections.")
@click.option("--network-threads", type=_POSITIVE, help="num.network.threads; Kafka's default if not given.")
@click.option("--io-threads", type=_POSITIVE, help="num.io.threads; Kafka's default if not given.")
@click.option("--queue", type=_POSITIVE, help="queued.max.requests; Kafka's default if not given.")
@click.option("--slow-handlers", type=click.IntRange(min=0), default=0, help="Handlers that are slow.")
@click.option("--slow-factor", type=_POSITIVE, default=100, show_default=True, help="How many times slower they are.")
@click.option("--json", "as_json", is_flag=True, help="Print everything measured as JSON.")
def requests_command(
    loads: Sequence[int], rates: Sequence[int], seconds: int, seed: int, as_json: bool, **how: Any
) -> int:
    """Simulate produce, fetch and metadata requests through a broker's threads and queues, at several loads.

    \b
    Examples:
      brokerside requests
      brokerside requests --load 80 --slow-handlers 1 --slow-factor 200
      brokerside requests --rate 20000 --io-threads 4 --json
    """
    options = _options(how)
    capacity = capacity_per_second(options, REQUEST_KINDS)
    asked = rates or [max(1, capacity * percent // 100) for percent in loads]
    reports = [
        RequestPath(
            options,
            Load(
                requests_per_second=rate,
                duration_ms=DurationMs(seconds * 1000),
                connection_count=how["connections"],
                slow_handler_count=how["slow_handlers"],
                slow_factor=how["slow_factor"],
            ),
            SplitMix64(derive(seed, index)),
        ).run()
        for index, rate in enumerate(asked)
    ]
    if as_json:
        click.echo(json.dumps([_as_json(report) for report in reports], indent=2))
    else:
        Console(soft_wrap=True).print(_table(reports, capacity))
    return 0


def _options(how: dict[str, Any]) -> RequestPathOptions:
    names = {
        "network_threads": "num.network.threads",
        "io_threads": "num.io.threads",
        "queue": "queued.max.requests",
    }
    texts = {name: str(how[option]) for option, name in names.items() if how[option] is not None}
    return RequestPathOptions.of(Settings.parse(Scope.BROKER, texts))


def _table(reports: Sequence[PathReport], capacity: int) -> Table:
    table = Table(title=f"Request path; its threads can carry {capacity:,} requests a second", title_justify="left")
    table.add_column("", no_wrap=True)
    for report in reports:
        table.add_column(f"{report.requests_per_second:,}/s", justify="right")
    for name, show in _ROWS.items():
        table.add_row(name, *(show(report) for report in reports))
    return table


def _phase(name: str, quantile: str) -> Callable[[PathReport], str]:
    def show(report: PathReport) -> str:
        return f"{getattr(report.all_kinds.phase(name), quantile):.2f}"

    return show


_ROWS: Final[dict[str, Callable[[PathReport], str]]] = {
    "answered": lambda report: f"{report.answered_count / max(1, report.arrived_count):.1%}",
    "total p50 ms": _phase("TotalTimeMs", "p50_ms"),
    "total p99 ms": _phase("TotalTimeMs", "p99_ms"),
    "total max ms": _phase("TotalTimeMs", "max_ms"),
    "in queue p99 ms": _phase("RequestQueueTimeMs", "p99_ms"),
    "in socket p99 ms": _phase("SocketTimeMs", "p99_ms"),
    "handlers idle": lambda report: f"{report.handler_idle_ratio:.1%}",
    "processors idle": lambda report: f"{report.processor_idle_ratio:.1%}",
    "processors blocked": lambda report: f"{report.blocked_ratio:.1%}",
    "queue mean": lambda report: f"{report.request_queue_mean:.1f}",
    "queue max": lambda report: str(report.request_queue_max),
    "purgatory max": lambda report: str(report.purgatory_max),
    "expired": lambda report: str(report.all_kinds.expired_count),
}
"""The lines of the table: a name and how a run's value is shown."""


def _as_json(report: PathReport) -> dict[str, Any]:
    facts = attrs.asdict(report)
    for kind in (*facts["kinds"], facts["all_kinds"]):
        kind["phases"] = dict(zip(PHASES, kind["phases"], strict=True))
    return facts
