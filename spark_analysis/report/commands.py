"""Build the commands that a report names for one cluster, with the inputs and options that the report was given.

It decides which arguments name the cluster again: its DUMP, the options that complete it and, where the input
describes several clusters, `--cluster`. Every argument is quoted for a shell, as names of files, clusters and topics
are other people's. A command with a character that cannot be seen is left out: what is copied from the page would not
be what is meant."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Sequence
from typing import Final

import attrs

from placement.formats.plan_files import election_command
from spark_analysis.live.cluster import LIVE
from spark_analysis.report.markup import visible
from spark_analysis.report.model import Report
from spark_analysis.report.rows import ClusterFacts, LeastPlan
from spark_analysis.tables.limits import BYTES_TOLERANCE_PERCENT

ELECTIONS: Final = "elections"
"""The folder of the files of elections, in that of the report."""
_PROGRAM: Final = "brokerside"
_STDIN: Final = "-"
_GOAL_OPTIONS: Final = {
    "balance": ("--goal", "balance"),
    "bytes": ("--goal", "balance", "--by", "bytes", "--tolerance", str(BYTES_TOLERANCE_PERCENT)),
    "leaders": ("--goal", "balance", "--only-leaders"),
    "racks": ("--goal", "racks"),
}


@attrs.frozen
class Commands:
    """Build the commands for one cluster: its DUMP, the options that complete it, and the beginning of folder names.

    `out` is the folder of the report.
    """

    dump: str
    options: tuple[str, ...]
    folder: str
    out: str = ""

    @property
    def reads_stdin(self) -> bool:
        """Return whether DUMP is standard input, which every command reads again."""
        return self.dump == _STDIN or self.dump.endswith(f"={_STDIN}")

    def outage(self) -> str | None:
        """Return the command that looks at every outage; None if it cannot be shown."""
        return self._line("outage", ())

    def roll(self) -> str | None:
        """Return the command that schedules restarts; None if it cannot be shown."""
        return self._line("roll", ())

    def plan(self, plan: LeastPlan) -> str | None:
        """Return the command that makes a plan; None if it cannot be shown."""
        return self._line("plan", (*_GOAL_OPTIONS[plan.goal], *_exceptions(plan), "--out", self._folder(plan)))

    def check(self, plan: LeastPlan) -> str | None:
        """Return the command that checks the plan, and that the cluster is still as it was; None as above."""
        target = ("--from-target",) if plan.from_target else ()
        return self._line("plan", (*target, "--check", self._folder(plan)))

    def drain(self, broker_ids: Sequence[int], goal: str) -> str | None:
        """Return the command that plans, by `goal`, to empty these brokers; None if it cannot be shown."""
        listed = ",".join(map(str, broker_ids))
        return self._line("plan", ("--goal", goal, "--remove", listed, "--out", f"{self.folder}-drain"))

    def election(self, kind: str) -> str | None:
        """Return the command that holds an election, preferred or unclean, of the partitions in its file."""
        line = election_command(shlex.quote(posixpath.join(self.out, self.election_file(kind))), kind)
        return line if visible(line) == line else None

    def election_file(self, kind: str) -> str:
        """Return the name of the file of an election, in the folder of the report."""
        return f"{ELECTIONS}/{self.folder}-{kind}.json"

    def _folder(self, plan: LeastPlan) -> str:
        return f"{self.folder}-{plan.goal}"

    def _line(self, command: str, more: tuple[str, ...]) -> str | None:
        dump = (self.dump,)
        is_option = self.dump == _STDIN or self.dump.startswith(LIVE)
        if self.dump.startswith("-") and not is_option:
            line = shlex.join([_PROGRAM, command, *self.options, *more, "--", *dump])
        else:
            line = shlex.join([_PROGRAM, command, *dump, *self.options, *more])
        return line if visible(line) == line else None


def _exceptions(plan: LeastPlan) -> tuple[str, ...]:
    excluded = tuple(part for topic in plan.excluded_topics for part in ("--exclude-topic", topic))
    return (*excluded, *(("--from-target",) if plan.from_target else ()))


def commands_of(report: Report, facts: ClusterFacts) -> Commands | None:
    """Return the commands for a cluster of dumps; None where the report does not know how its input was given."""
    given = report.run.given
    if not given:
        return None
    number = facts.cluster_id % len(given)
    folder = given[number].folder or "cluster"
    options = given[number].options
    is_alone = report.current_count_by_input[number] == 1
    if not is_alone:
        options = (*options, "--cluster", facts.cluster)
    is_named = is_alone and report.run.folder_counts[folder] <= 1
    unique = folder if is_named else f"{folder}-{facts.cluster_id}"
    return Commands(given[number].dump, options, unique, report.run.out)
