"""Take a live cluster in the place of a DUMP, as the options of broker.cli_options.live_options name it."""

from __future__ import annotations

import attrs
import click

from broker.cli import printable
from broker.errors import UsageError
from spark_analysis.cli.commands import PROGRAM
from spark_analysis.live.cluster import LiveCluster, Snapshot, take_snapshot


@attrs.frozen(kw_only=True, slots=False)  # It stands beside other bases.
class LiveOptions:
    """Hold the options that name a live cluster."""

    bootstrap_server: str | None = None
    command_config: str | None = None

    @property
    def live(self) -> LiveCluster | None:
        """Return the live cluster that the options name, None without --bootstrap-server."""
        return None if self.bootstrap_server is None else LiveCluster(self.bootstrap_server, self.command_config)


def dump_or_live(dump: str | None, options: LiveOptions, *, name: str = "DUMP") -> str:
    """Return the argument that names the input: a dump, or the live cluster; raise UsageError unless it is one."""
    if dump is not None and options.live is not None:
        raise UsageError(f"{name} and --bootstrap-server are two inputs; give one of them")
    if dump is not None:
        return dump
    if options.live is None:
        raise click.UsageError(f"Missing argument '{name}'.", click.get_current_context(silent=True))
    return options.live.path


def snapshot_of(options: LiveOptions) -> Snapshot | None:
    """Take the snapshot of the live cluster, and say on standard error what it lacks; None without one."""
    if options.live is None:
        return None
    found = take_snapshot(options.live)
    for note in found.notes:
        click.echo(printable(f"{PROGRAM}: warning: {note}"), err=True)
    return found
