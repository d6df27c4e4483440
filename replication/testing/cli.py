"""Define the command `brokerside serve`: a simulated cluster for any client, in real time.

Source: ours.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

import attrs
import click

from broker.cli import EXIT_REFUSED, takes
from broker.cli_options import idle_beside, idle_without, printing_option, seed_option
from broker.cluster import ClusterView
from broker.errors import UsageError
from broker.wording import counted
from replication.simulation.fault import fault_lines
from replication.simulation.options import BROKER_COUNT_MAX
from replication.simulation.report import verdict_line
from replication.simulation.run import Outcome
from replication.testing.fault_watch import FaultNotice, struck_text
from replication.testing.serve_options import FAULT_KINDS, ServeOptions
from replication.testing.topics import PORT_MAX

if TYPE_CHECKING:
    from replication.testing.cluster_spec import ClusterSpec

Events = SimpleQueue[FaultNotice | None]
"""What the server has to tell; None ends it."""
_WAIT_S: Final = 0.5


def _only_one(_context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> str | None:
    """Return the value of an option; raise UsageError for one that is given several times."""
    if len(values) > 1:
        raise UsageError(f"{option.opts[0]} is given {len(values)} times; give it once")
    return values[0] if values else None


@click.command("serve")
@click.option(
    "--brokers", type=click.IntRange(1, BROKER_COUNT_MAX), default=3, metavar="COUNT", help="Brokers (default 3)."
)
@click.option(
    "--racks",
    metavar="A,B,...|FILE",
    help="Racks of the brokers, in turn (default none); with --from a file: JSON, or CSV lines broker,rack.",
)
@click.option(
    "--from",
    "dump",
    metavar="DUMP",
    multiple=True,
    callback=_only_one,
    help="Serve the brokers, racks, topics, replicas, leaders and settings of a real cluster, without records: of a "
    "dump, snapshot or metadata log, as other commands take it.",
)
@click.option("--only", metavar="NAME,...", help="Topics of the dump to serve, such as 'orders*' (default all).")
@click.option("--cluster", metavar="NAME", help="Cluster to take where the dump describes several.")
@click.option("--at", metavar="OFFSET|TIME", help="Moment of a metadata log (default: its end).")
@click.option("--partial", is_flag=True, help="Serve what is listed although partitions are missing in the dump.")
@click.option("--topic", "topics", multiple=True, metavar="NAME[:PARTITIONS]", help="Create a topic; may be repeated.")
@click.option(
    "--replication-factor",
    "factor",
    type=click.IntRange(1, BROKER_COUNT_MAX),
    metavar="N",
    help="Replicas (default 3, or all brokers).",
)
@click.option(
    "--min-insync-replicas",
    "min_isr",
    type=click.IntRange(1, BROKER_COUNT_MAX),
    metavar="N",
    help="Default: one less than the replicas.",
)
@click.option(
    "--port",
    type=click.IntRange(0, PORT_MAX),
    default=9_092,
    metavar="N",
    help="Port of the first broker; the others follow (default 9092; 0: free ones).",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="'KIND [BROKER] at TIME [for TIME]'",
    help="Break something, such as 'kill 2 at 30s for 10s', 10 s if not said; may be repeated. See --fault-kinds.",
)
@printing_option("--fault-kinds", lambda: fault_lines(FAULT_KINDS), "Print the kinds of --fault and exit.")
@click.option("--unclean", is_flag=True, help="Allow unclean leader election.")
@click.option("--no-auto-create", is_flag=True, help="Create no topic because a client asks for it.")
@seed_option()
@idle_beside("--from", "--brokers", "--replication-factor")
@idle_without("--from", "--only", "--cluster", "--at", "--partial")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print a JSON object a line: when ready, for each fault as it strikes and is over, and as the verdict.",
)
@takes(ServeOptions)
def serve(options: ServeOptions) -> int:
    """Serve a simulated cluster to any Kafka client, on ports of 127.0.0.1, until Ctrl-C.

    Replication, elections and groups are those of Kafka; the checkers of the
    simulation run all the while. Ctrl-C ends the faults, lets the cluster
    recover and prints the verdict: status 0 if no invariant broke, 1 otherwise.
    Each fault is reported when it strikes and when it is over.
    Transactions, ACLs, share groups, SASL and TLS are not served.

    \b
    Examples:
      brokerside serve --topic orders:6
      brokerside serve --brokers 5 --racks a,b,c --topic orders:6 --topic audit
      brokerside serve --topic orders:6 --fault 'kill 2 at 30s for 10s'
      brokerside serve --from prod.txt --racks racks.csv --only 'orders*'
    """
    # Late: the wire formats are an extra, and take half a second to load.
    from replication.testing.serve_spec import spec_of

    spec = spec_of(options, _view(options))
    with _signals() as events:
        # A further signal is taken and changes nothing: the verdict is on its way.
        ended = _serve_until_stopped(spec, events, as_json=options.as_json)
        click.echo(json.dumps(_fields(ended)) if options.as_json else f"\n{_verdict(ended)}")
    return EXIT_REFUSED if ended.outcome.is_broken else 0


@attrs.frozen
class _Ended:
    """Hold the outcome of a cluster that was served, and how many faults of its plan struck."""

    outcome: Outcome
    struck_count: int


def _serve_until_stopped(spec: ClusterSpec, events: Events, *, as_json: bool) -> _Ended:
    """Serve until a signal comes, print the bootstrap servers and each fault, and return the outcome."""
    from replication.testing.kafka import Kafka
    from replication.testing.sockets import SocketServer

    server = SocketServer(spec, on_fault=events.put)
    try:
        server.start()
    except OSError as error:
        raise UsageError(f"cannot listen: {error.strerror}; --port 0 takes free ports") from None
    server.on_failure = partial(events.put, None)
    servers = Kafka(server.served, server.call).bootstrap_servers
    if as_json:
        ready = {"bootstrap_servers": servers, "brokers": spec.brokers, "seed": spec.seed}
        click.echo(json.dumps({"event": "ready", **ready}))
    else:
        click.echo(f"bootstrap servers: {servers}")
        click.echo(f"{counted(len(spec.topics), 'topic')} of {counted(spec.brokers, 'broker')}; Ctrl-C ends")
    while (notice := _next(events)) is not None:
        click.echo(json.dumps(notice.fields()) if as_json else str(notice))
    server.stop()
    return _Ended(server.served.finish(), server.served.faults.struck_count)


def _view(options: ServeOptions) -> ClusterView | None:
    """Return the cluster of --from, as the commands for dumps read it; None without one."""
    if options.dump is None:
        return None
    joined: dict[str, Callable[..., ClusterView]] | None = click.get_current_context().find_object(dict)
    if joined is None:
        raise UsageError("--from is part of `brokerside serve`")
    if options.racks is not None and "://" not in options.racks and not Path(options.racks).exists():
        what = "is no file; with --from a file is wanted: JSON, or CSV lines broker,rack"
        raise UsageError(f"--racks {options.racks!r} {what}")
    names = {"racks": options.racks, "cluster": options.cluster, "at": options.at, "min_isr": options.min_isr}
    return joined["cluster"](options.dump, partial=options.partial, **names)


def _next(events: Events) -> FaultNotice | None:
    """Wait for the next notice, None for the end; return to the interpreter now and then.

    A signal that comes just before the thread waits is handled only when the wait is over.
    """
    while True:
        with suppress(Empty):
            return events.get(timeout=_WAIT_S)


@contextmanager
def _signals() -> Iterator[Events]:
    """Let SIGINT, SIGTERM and SIGHUP put None into a queue instead of ending the process; nohup's choice stays."""
    events: Events = SimpleQueue()
    wanted = (getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP"))  # Windows has no SIGHUP.
    numbers = [each for each in wanted if each is not None and signal.getsignal(each) is not signal.SIG_IGN]
    before = [signal.signal(number, lambda *_: events.put(None)) for number in numbers]
    try:
        yield events
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _verdict(ended: _Ended) -> str:
    """Return the verdict in a line, with how many records were acknowledged, and how many of the faults struck."""
    report, count = ended.outcome.durability, len(ended.outcome.plan)
    parts = [verdict_line(ended.outcome)]
    if not report.lost_by_all:  # Or the verdict says of how many.
        acked = f"{counted(report.acked_count, 'record')} acknowledged by all, 0 of them lost"
        parts.append(acked if report.acked_count else "no record acknowledged by all")
    if count:
        parts.append(struck_text(ended.struck_count, count))
    return "; ".join(parts)


def _fields(ended: _Ended) -> dict[str, object]:
    return {"event": "verdict", **verdict_fields(ended.outcome), "faults_struck": ended.struck_count}


def verdict_fields(outcome: Outcome) -> dict[str, object]:
    """Return the verdict on a cluster that real clients used as values of JSON."""
    report = outcome.durability
    return {
        "is_broken": outcome.is_broken,
        "findings": [str(finding) for finding in outcome.findings],
        "acknowledged_by_all": report.acked_count,
        "lost_by_all": len(report.lost_by_all),
        "acknowledged_by_one": report.acked_by_one_count,
        "lost_by_one": len(report.lost_by_one),
        "faults": len(outcome.plan),
        "simulated_ms": outcome.simulated_ms,
        "digest": outcome.digest,
    }
