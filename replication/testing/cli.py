"""Define the command `brokerside serve`: a simulated cluster for any client, in real time.

Source: ours.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from broker.cli import EXIT_REFUSED, takes
from broker.cli_options import idle_beside, idle_without, seed_option
from broker.cluster import ClusterView
from broker.errors import UsageError
from broker.wording import counted
from replication.simulation.options import BROKER_COUNT_MAX
from replication.simulation.report import verdict_line
from replication.simulation.run import Outcome
from replication.testing.serve_options import FAULT_NAMES, ServeOptions
from replication.testing.topics import PORT_MAX


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
    help=f"Break something, such as 'kill 2 at 30s for 10s'; may be repeated. Kinds: {', '.join(FAULT_NAMES)}.",
)
@click.option("--unclean", is_flag=True, help="Allow unclean leader election.")
@click.option("--no-auto-create", is_flag=True, help="Create no topic because a client asks for it.")
@seed_option()
@idle_beside("--from", "--brokers", "--replication-factor")
@idle_without("--from", "--only", "--cluster", "--at", "--partial")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object when ready, and one as the verdict.")
@takes(ServeOptions)
def serve(options: ServeOptions) -> int:
    """Serve a simulated cluster to any Kafka client, on ports of 127.0.0.1, until Ctrl-C.

    Replication, elections and groups are those of Kafka; the checkers of the
    simulation run all the while. Ctrl-C ends the faults, lets the cluster
    recover and prints the verdict: status 0 if no invariant broke, 1 otherwise.
    Transactions, ACLs, share groups, SASL and TLS are not served.

    \b
    Examples:
      brokerside serve --topic orders:6
      brokerside serve --brokers 5 --racks a,b,c --topic orders:6 --topic audit
      brokerside serve --topic orders:6 --fault 'kill 2 at 30s for 10s'
      brokerside serve --from prod.txt --racks racks.csv --only 'orders*'
    """
    outcome = _serve_until_stopped(options)
    click.echo(json.dumps(_fields(outcome)) if options.as_json else f"\n{verdict_line(outcome)}")
    return EXIT_REFUSED if outcome.is_broken else 0


def _serve_until_stopped(options: ServeOptions) -> Outcome:
    """Serve, print where, wait for a signal, and return the outcome."""
    # Late: the wire formats are an extra, and take half a second to load.
    from replication.testing.kafka import Kafka
    from replication.testing.serve_spec import spec_of
    from replication.testing.sockets import SocketServer

    spec = spec_of(options, _view(options))
    server = SocketServer(spec)
    with _stopped_by_signals() as stopped:
        try:
            server.start()
        except OSError as error:
            raise UsageError(f"cannot listen: {error.strerror}; --port 0 takes free ports") from None
        servers = Kafka(server.served, server.call).bootstrap_servers
        if options.as_json:
            click.echo(json.dumps({"bootstrap_servers": servers, "brokers": spec.brokers, "seed": spec.seed}))
        else:
            click.echo(f"bootstrap servers: {servers}")
            click.echo(f"{counted(len(spec.topics), 'topic')} of {counted(spec.brokers, 'broker')}; Ctrl-C ends")
        server.on_failure = stopped.set
        stopped.wait()
    server.stop()
    return server.served.finish()


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


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """Let SIGINT and SIGTERM set an event instead of ending the process."""
    stopped = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stopped.set()) for number in numbers]
    try:
        yield stopped
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _fields(outcome: Outcome) -> dict[str, object]:
    report = outcome.durability
    return {
        "is_broken": outcome.is_broken,
        "findings": [str(finding) for finding in outcome.findings],
        "acknowledged_by_all": report.acked_count,
        "lost_by_all": len(report.lost_by_all),
        "acknowledged_by_one": report.acked_by_one_count,
        "lost_by_one": len(report.lost_by_one),
        "simulated_ms": outcome.simulated_ms,
        "digest": outcome.digest,
    }
