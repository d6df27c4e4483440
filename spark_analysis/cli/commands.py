"""List the commands of `brokerside` by name, each with its module and its summary.

A command's module is loaded when the command is called, so `brokerside --help` and shell completion load none.

Constraints: standard output carries the answer, standard error the progress and the warnings;
exit status: 0 done; 1 a finding or a refusal, also rows put aside with --strict; 2 unusable input or options.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import attrs
import click
from click.shell_completion import CompletionItem, shell_complete

from broker.cli import CommandGroup
from spark_analysis.cli.interrupts import raise_in_command

if TYPE_CHECKING:
    from broker.cluster import ClusterView
    from log.tools.findings import Problems
    from log.tools.sources import SourceFolder

PROGRAM: Final = "brokerside"
COMPILING: Final = "brokerside: compiling once for this installation; the next run starts at once"
COMPLETION_VARIABLE: Final = "_BROKERSIDE_COMPLETE"


DUMPS: Final = "With dumps of your clusters"
LOGS: Final = "With log files of a broker"
NOTHING: Final = "With nothing yet: simulations, settings, placements"


@attrs.frozen
class Joined:
    """One command: what it needs, the module that defines it, its name there, and the first sentence of its help."""

    needs: str
    module: str
    name: str
    summary: str

    def load(self) -> click.Command:
        """Import the command."""
        command: click.Command = getattr(import_module(self.module), self.name)
        return command


_COMMANDS: Final = """\
assign nothing placement.cli:assign
    Print where Kafka would place TOPICs, in the order given, as one controller would.
compare dumps spark_analysis.cli.compare:compare_command
    Show what changed between two dumps of one cluster, and which broker each change is about.
config nothing broker.__main__:config
    Print all of Kafka's broker, topic and group settings, or everything known about the setting NAME.
diagram nothing broker.__main__:diagram
    Print the broker's life cycle, as the controller sees it, from the model's transition table.
explore nothing replication.explore.cli:explore
    Search every history within bounds for one in which a committed record is lost.
fleet nothing spark_analysis.cli.fleet:fleet
    Simulate a fleet of clusters, place every topic as Kafka would, and report how even the clusters are.
groups nothing replication.groups.cli:groups
    Show the members' partitions in a consumer group, and the cost of rebalances.
impact dumps spark_analysis.cli.impact:impact_command
    Show what a reassignment plan does to a cluster before it is run.
log logs log.cli.main:log
    Read, check and rework segments, indexes and checkpoints on disk, without a broker.
mirror nothing replication.mirror.cli:mirror
    Copy one cluster into another as MirrorMaker 2 does, and check the copy.
outage dumps spark_analysis.cli.outage:outage_command
    Show what losing brokers or racks does: leaders, min-ISR, data at risk, and who takes over.
partition nothing placement.producer.cli:partition_command
    Print the partition that each client's partitioner chooses for a key.
plan dumps spark_analysis.cli.plan:plan_command
    Make the plan that moves the least replicas to reach a goal, or few bytes, with its proof; or check one.
recipes nothing spark_analysis.cli.recipes:recipes
    List the recipes that come with the library, by the name that `brokerside fleet` takes.
report dumps spark_analysis.cli.report:report
    Report what is wrong with clusters, how even they are, and what to do next.
requests nothing broker.requests.cli:requests_command
    Simulate produce, fetch and metadata requests through a broker's threads and queues, at several loads.
roll dumps spark_analysis.cli.roll:roll
    Schedule restarts in the fewest batches in which no partition falls under min.insync.replicas.
scenario nothing replication.scenarios.cli:scenario
    List and run named fault scenarios with known outcomes.
serve nothing replication.testing.cli:serve
    Serve a simulated cluster to any Kafka client, on ports of 127.0.0.1, until Ctrl-C.
simulate nothing replication.cli.simulate:simulate
    Run a cluster on a virtual clock under faults and check the invariants at every step.
snapshot dumps spark_analysis.cli.snapshot:snapshot_command
    Keep what a live cluster says of itself as a dump, which every command and Spark read.
study nothing spark_analysis.cli.study:study_command
    Run a study of replication: a grid of settings times seeds, a row for each run.
"""
"""Two lines for each command: its name, what it needs, module and object; and the first sentence of its help."""


def _joined(text: str) -> Iterator[tuple[str, Joined]]:
    """Yield the commands of `_COMMANDS` by name."""
    needs = {"dumps": DUMPS, "logs": LOGS, "nothing": NOTHING}
    lines = text.splitlines()
    for head, summary in zip(lines[::2], lines[1::2], strict=True):
        name, need, place = head.split(" ")
        module, _, attribute = place.partition(":")
        yield name, Joined(needs[need], module, attribute, summary.strip())


JOINED: Final[Mapping[str, Joined]] = MappingProxyType(dict(_joined(_COMMANDS)))
"""Every command of `brokerside`; a test holds each summary equal to the command's own."""


IN_USE: Final = ("snapshot", "report", "outage", "plan", "impact", "roll", "compare")
"""The commands that take dumps, in the order in which one needs them."""


class JoinedCommands(CommandGroup):
    """Load the commands of `JOINED` by name; a command that is not called is not loaded."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, sorted."""
        return sorted(JOINED)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the command of this name."""
        return JOINED[cmd_name].load() if cmd_name in JOINED else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a row per command for dumps or logs, in order of use, and the names of the other commands."""
        names = {needs: [name for name in sorted(JOINED) if JOINED[name].needs == needs] for needs in (LOGS, NOTHING)}
        for needs, listed in ((DUMPS, IN_USE), (LOGS, names[LOGS])):
            with formatter.section(needs):
                formatter.write_dl([(name, JOINED[name].summary) for name in listed])
        with formatter.section(NOTHING):
            formatter.write_text(f"{', '.join(names[NOTHING])} (`{PROGRAM} NAME --help` says what each does)")

    def summary(self, ctx: click.Context, name: str) -> str:
        """Return the command's summary, without loading it."""
        return JOINED[name].summary

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Load the command that is called; afterwards the command handles an interrupt."""
        found = super().resolve_command(ctx, args)
        raise_in_command()
        if "broker.compiled" in sys.modules:  # Commands without loops start without numpy.
            say_when_compiling()
        return found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the completions of `incomplete`: commands, without loading them, and options."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=self.summary(ctx, name)) for name in names]
        return commands + click.Command.shell_complete(self, ctx, incomplete)


def _write_log_tables(
    folders: Sequence[SourceFolder], out: Path, problems: Problems, advance: Callable[[int], None]
) -> Iterable[str]:
    from spark_analysis.tables.log import write_log_tables

    return write_log_tables(folders, out, problems, advance)


def _snapshot(servers: str, command_config: str | None) -> bytes:
    from spark_analysis.cli.live_options import LiveOptions, snapshot_of

    found = snapshot_of(LiveOptions(bootstrap_server=servers, command_config=command_config))
    return b"" if found is None else found.data


def _cluster(dump: str, **options: Any) -> ClusterView:
    from spark_analysis.cli.cluster_inputs import view_of

    return view_of(dump, **options)


@click.group(
    cls=JoinedCommands,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "obj": {"write_tables": _write_log_tables, "snapshot": _snapshot, "cluster": _cluster},
    },
)
@click.version_option(package_name=PROGRAM, prog_name=PROGRAM)
def brokerside() -> None:
    """Model the broker side of Apache Kafka offline: exact placement, and balance over very many clusters."""


def say_when_compiling() -> None:
    """Announce on a terminal, before the first loop is compiled, that this happens once for an installation."""
    from broker.compiled import on_compilation  # Commands without loops start without numpy.

    def say() -> None:
        if sys.stderr.isatty():
            sys.stderr.write(COMPILING + "\n")
            sys.stderr.flush()

    on_compilation(say)


def complete() -> None:
    """Answer a shell's request for completions, and exit; do nothing without such a request."""
    asked = os.environ.get(COMPLETION_VARIABLE)
    if asked:
        sys.exit(shell_complete(brokerside, {}, PROGRAM, COMPLETION_VARIABLE, asked))
