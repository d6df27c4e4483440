"""Run `brokerside requests`, which measures a broker's threads and queues under load."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import attrs
import click
from rich.console import Console
from rich.table import Table

from broker.cli import takes
from broker.cli_options import COUNT, JAVA_SEED, idle_beside, idle_without
from broker.config.setting import Scope
from broker.config.settings import Settings
from broker.entropy import SplitMix64, derive
from broker.requests.measures import PHASES, PathReport
from broker.requests.options import REQUEST_KINDS, Load, RequestPathOptions, capacity_per_second
from broker.requests.reactor import RequestPath
from broker.units import SECOND_MS, DurationMs
from broker.wording import counted

_THREADS: Final = click.IntRange(1, 10_000)
_MANY: Final = click.IntRange(1, 1_000_000)  # Each connection and each request in flight is an object.
LOADS_DEFAULT: Final = (25, 50, 75, 90, 100, 110)


@attrs.frozen(kw_only=True)
class RequestsOptions:
    """Hold the options of `brokerside requests`: loads, threads, queue and clients."""

    loads: tuple[int, ...]
    rates: tuple[int, ...]
    seconds: int
    seed: int
    connections: int
    network_threads: int | None
    io_threads: int | None
    queue: int | None
    slow_handlers: int
    slow_factor: int
    as_json: bool


@click.command(name="requests")
@idle_beside("--rate", "--load")
@idle_without("--slow-handlers", "--slow-factor")
@click.option(
    "--load", "loads", type=click.IntRange(1, 1000), multiple=True, default=LOADS_DEFAULT, show_default=True,
    metavar="PERCENT", help="Load in percent of the threads' capacity; may be given several times.",
)  # fmt: skip
@click.option("--rate", "rates", type=_MANY, multiple=True, help="Load in requests per second, instead of --load.")
@click.option(
    "--seconds",
    type=click.IntRange(1, 3600),
    default=2,
    show_default=True,
    help="Simulated duration of a run, in seconds.",
)
@click.option("--seed", type=JAVA_SEED, default=1, show_default=True, help="Seed of the random generator.")
@click.option("--connections", type=_MANY, default=1000, show_default=True, help="Number of client connections.")
@click.option("--network-threads", type=_THREADS, help="Network threads, num.network.threads (default 3).")
@click.option("--io-threads", type=_THREADS, help="I/O threads, num.io.threads (default 8).")
@click.option("--queue", type=COUNT, help="Requests that the queue holds, queued.max.requests (default 500).")
@click.option(
    "--slow-handlers", type=click.IntRange(0, 10_000), default=0, show_default=True, help="Number of slow handlers."
)
@click.option(
    "--slow-factor", type=_MANY, default=100, show_default=True, help="Factor by which slow handlers are slower."
)
@click.option("--json", "as_json", is_flag=True, help="Print all measures as JSON.")
@takes(RequestsOptions)
def requests_command(options: RequestsOptions) -> int:
    """Simulate produce, fetch and metadata requests through a broker's threads and queues, at several loads.

    \b
    Examples:
      brokerside requests
      brokerside requests --load 80 --slow-handlers 1 --slow-factor 200
      brokerside requests --rate 20000 --io-threads 4 --json
    """
    names = ("num.network.threads", "num.io.threads", "queued.max.requests")
    given = zip(names, (options.network_threads, options.io_threads, options.queue), strict=True)
    texts = {name: str(value) for name, value in given if value is not None}
    path = RequestPathOptions.of(Settings.parse(Scope.BROKER, texts))
    capacity = capacity_per_second(path, REQUEST_KINDS)
    rates = options.rates or [max(1, capacity * percent // 100) for percent in options.loads]
    load = Load(
        requests_per_second=1,
        duration_ms=DurationMs(options.seconds * SECOND_MS),
        connection_count=options.connections,
        slow_handler_count=options.slow_handlers,
        slow_factor=options.slow_factor,
    )
    reports = [
        RequestPath(path, attrs.evolve(load, requests_per_second=rate), SplitMix64(derive(options.seed, index))).run()
        for index, rate in enumerate(rates)
    ]
    if options.as_json:
        click.echo(json.dumps([_as_json(report) for report in reports], indent=2))
        return 0
    title = f"Request path; its threads can carry {counted(capacity, 'request')} a second"
    table = Table(title=title, title_justify="left")
    table.add_column("", no_wrap=True)
    for report in reports:
        table.add_column(f"{report.requests_per_second:,}/s", justify="right")
    for name, show in _ROWS.items():
        table.add_row(name, *(show(report) for report in reports))
    Console(soft_wrap=True).print(table)
    return 0


def _phase(name: str, quantile: str) -> Callable[[PathReport], str]:
    return lambda report: f"{getattr(report.all_kinds.phase(name), quantile):.2f}"


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
