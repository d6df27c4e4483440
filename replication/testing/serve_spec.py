"""Make the description of a cluster to serve from the options of `brokerside serve`.

Source: ours.
"""

from __future__ import annotations

from typing import Any

import attrs
import click

from broker.cluster import ClusterView
from broker.errors import UsageError
from broker.wording import printable
from replication.testing.cluster_spec import ClusterSpec
from replication.testing.like import spec_like
from replication.testing.serve_options import PORT_MAX, ServeOptions, read_fault, read_topic


def spec_of(options: ServeOptions, view: ClusterView | None) -> ClusterSpec:
    """Return the cluster that the options describe, like `view` if it is given; say on standard error what differs."""
    fields: dict[str, Any] = {
        "topics": dict(map(read_topic, options.topics)),
        "seed": options.seed,
        "faults": tuple(map(read_fault, options.faults)),
        "unclean_election": options.unclean,
        "auto_create": not options.no_auto_create,
    }
    if view is None:
        spec = ClusterSpec(
            brokers=options.brokers,
            racks=tuple(options.racks.split(",")) if options.racks else (),
            factor=options.factor or 0,
            min_insync_replicas=options.min_isr or 0,
            **fields,
        )
    else:
        found = spec_like(view, () if options.only is None else options.only.split(","), **fields)
        for note in found.notes:
            click.echo(printable(f"brokerside: note: {note}"), err=True)
        spec = found.spec
    first, last = options.port, options.port + spec.brokers - 1
    if last > PORT_MAX:
        raise UsageError(f"--port {first} leaves no port for broker {spec.ids[-1]}; the largest is {PORT_MAX}")
    return attrs.evolve(spec, ports=tuple(range(first, last + 1)) if first else ())
