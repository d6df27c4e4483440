"""Define `brokerside snapshot`, which keeps what a live cluster says of itself as a dump."""

from __future__ import annotations

from pathlib import Path

import attrs
import click

from broker.cli import printable, takes
from broker.cli_options import live_options
from broker.wording import counted
from placement.formats.read import read_dump
from spark_analysis.cli.live_options import LiveOptions, dump_or_live, snapshot_of


@attrs.frozen(kw_only=True)
class SnapshotOptions(LiveOptions):
    """Hold the options of `brokerside snapshot`."""

    out: Path


@click.command("snapshot")
@live_options
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the snapshot, a JSON object; a file of this name is replaced.",
)
@takes(SnapshotOptions)
def snapshot_command(options: SnapshotOptions) -> int:
    """Keep what a live cluster says of itself as a dump, which every command and Spark read.

    \b
    Nothing in the cluster is changed. Brokers and racks, partitions, settings,
    groups with offsets and lag; what could not be read is said, and null.
    With TLS or SASL, --command-config takes the file of Kafka's own tools.
    brokerside snapshot --bootstrap-server HOST:9092 --out prod.json
    """
    dump_or_live(None, options, name="--bootstrap-server")
    found = snapshot_of(options)
    assert found is not None  # As dump_or_live has seen a live cluster.
    (view,) = read_dump([found.data], source=str(options.out)).clusters
    hidden = options.out.with_name(f".{options.out.name}.part")  # The name is given to a whole file alone.
    hidden.write_bytes(found.data)
    hidden.replace(options.out)
    brokers, partitions = counted(len(view.brokers), "broker"), counted(view.partitions.count, "partition")
    click.echo(printable(f"Written: {options.out}: {brokers}, {len(view.down)} of them down; {partitions}"))
    return 0
