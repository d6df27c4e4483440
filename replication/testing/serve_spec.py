"""Make the description of a cluster to serve from the options of `brokerside serve`.

Source: ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import click

from broker.cluster import ClusterView
from broker.errors import UsageError
from broker.known import known_of
from broker.wording import counted, printable
from replication.testing.cluster_spec import ClusterSpec
from replication.testing.like import spec_like
from replication.testing.serve_options import ServeOptions, read_fault, read_topic
from replication.testing.topics import PORT_MAX


def spec_of(options: ServeOptions, view: ClusterView | None) -> ClusterSpec:
    """Return the cluster that the options describe, like `view` if it is given; say on standard error what differs."""
    topics = dict(map(read_topic, options.topics))
    if len(topics) < len(options.topics):
        names = [read_topic(text)[0] for text in options.topics]
        raise UsageError(f"topic {next(name for name in names if names.count(name) > 1)!r} is given twice")
    fields: dict[str, Any] = {
        "topics": topics,
        "min_insync_replicas": options.min_isr or 0,
        "seed": options.seed,
        "faults": tuple(map(read_fault, options.faults)),
        "unclean_election": options.unclean,
        "auto_create": not options.no_auto_create,
    }
    if view is None:
        _check_without_dump(options)
        spec = ClusterSpec(
            brokers=options.brokers,
            racks=tuple(options.racks.split(",")) if options.racks else (),
            factor=options.factor or 0,
            **fields,
        )
    else:
        found = spec_like(view, () if options.only is None else options.only.split(","), **fields)
        for note in (*found.notes, *known_of(view).racks_lines()):
            click.echo(printable(f"brokerside: note: {note}"), err=True)
        spec = found.spec
    first, last = options.port, options.port + spec.brokers - 1
    if last > PORT_MAX:
        raise UsageError(f"--port {first} leaves no port for broker {spec.ids[-1]}; the largest is {PORT_MAX}")
    return attrs.evolve(spec, ports=tuple(range(first, last + 1)) if first else ())


def _check_without_dump(options: ServeOptions) -> None:
    """Raise UsageError, naming the option, for more replicas than brokers and for a file in --racks without --from."""
    factor = options.factor or min(3, options.brokers)
    limits = (
        ("--replication-factor", options.factor, options.brokers, "broker"),
        ("--min-insync-replicas", options.min_isr, factor, "replica"),
    )
    for name, value, most, what in limits:
        if value is not None and value > most:
            raise UsageError(f"{name} is {value}, for {counted(most, what)}; allowed are 1 to {most}")
    racks = options.racks
    if racks is not None and (racks.endswith((".csv", ".json")) or Path(racks).is_file()):
        raise UsageError(f"--racks {racks!r} is a file, which is read with --from alone; write racks as a,b,c")
