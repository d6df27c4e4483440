"""Check the plan in a folder from the copy of its input: no solver is imported.

It decides whether plan.json is feasible and at its bound, by the rules of placement/planning/check.py alone; whether
the copy is the input that the certificate names; and whether every other file is what plan and input make of it
(plan_files_check.py). A file that is missing, unknown, unreadable or another is a fault that names it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import RenderableType
from rich.text import Text

from broker.cluster import ClusterView
from broker.errors import InputError, UsageError
from broker.units import format_size
from placement.formats.certificates import Certified, digest, isr_digest, read_certificate, sizes_digest
from placement.formats.documents import parse_object
from placement.formats.plan_files import PLAN
from placement.planning.check import Tally, faults, tally
from placement.planning.given import target_rows
from placement.planning.goal import with_added
from placement.planning.input_table import COLUMNS, view_of_input
from spark_analysis.cli.plan_files_check import batches_of, faults_of_files, read_reassignment, read_text, regular
from spark_analysis.cli.plan_folder import SUMMARY, Planned
from spark_analysis.report.figures import count, plural

ROWS_MAX: Final = 1 << 22
"""Partitions of an input, at most: more than any cluster has, and a few hundred MiB."""
VALUES_MAX: Final = 1 << 24
"""Values of a column of lists in it, at most."""
PAGES_BYTES_MAX: Final = 1 << 29
"""Bytes of the columns in it before they are decoded, at most."""
CHECKED: Final = "check"


@attrs.frozen(kw_only=True)
class Checked:
    """Hold what the check of a folder found: counts and bounds, None if they cannot be read, and faults."""

    folder: str
    tally: Tally | None
    faults: tuple[str, ...]

    def summary(self) -> dict[str, Any]:
        """Return the findings for programs."""
        counts = dict.fromkeys(attrs.fields_dict(Tally)) if self.tally is None else attrs.asdict(self.tally)
        return {"is_right": not self.faults, **counts, "faults": list(self.faults)}

    def shown(self) -> Sequence[RenderableType]:
        """Return the findings for people."""
        if self.faults or self.tally is None:
            return (Text(f"{self.folder}: {plural(len(self.faults), 'fault')}."),)
        found = self.tally
        return (
            Text(
                f"{self.folder}: feasible and {_place(found)}. {_moved(found)}; "
                f"{_all_of(found.leader_changes, 'leader', 'change')}, any plan changes at least "
                f"{count(found.leader_changes_least)}."
            ),
        )


def _place(found: Tally) -> str:
    if found.moved_bytes_gap is None:
        return "at its bound"
    return f"within its byte tolerance, {100 * found.moved_bytes_gap:.2f} % above its bound"


def _moved(found: Tally) -> str:
    if found.moved_bytes is not None and found.moved_bytes_bound is not None:
        return (
            f"{format_size(found.moved_bytes)} in {_all_of(found.moved, 'replica', 'move')}, any plan moves at least "
            f"{format_size(found.moved_bytes_bound)}"
        )
    return f"{_all_of(found.moved, 'replica', 'move')}, any plan moves at least {count(found.moved_bound or 0)}"


def _all_of(value: int, noun: str, verb: str) -> str:
    """Return a count with its noun and verb, such as "1 replica moves"."""
    return f"{plural(value, noun)} {verb}{'s' if value == 1 else ''}"


def check_folder(folder: Path, dump: ClusterView | None) -> Checked:
    """Return what is wrong with the plan in a folder; with `dump`, also whether the plan was made for it.

    Raises InputError for a folder without a plan.
    """
    path = folder / "certificate.json"
    if not any((folder / name).exists() for name in (path.name, PLAN, "commands.txt")):
        raise InputError("is missing; a plan's folder has it", source=str(path))
    try:
        certified = read_certificate(read_text(path), source=path.name)
        view = _view(folder / "input.parquet", certified)
        plan, found = read_reassignment(folder / PLAN, view)
    except InputError as error:
        return Checked(folder=str(folder), tally=None, faults=(str(error),))
    plan = plan.take(np.argsort(plan.rows))  # plan.json lists topics by name, the plan in the order of its input.
    goal, certificate = certified.goal, certified.certificate
    target = target_rows(view, plan.rows, plan.replicas)
    found += faults(view, goal, target, certificate)
    if digest(view) != certified.input_sha256:
        found.append("input.parquet is not the input that the certificate was made for")
    if dump is not None and digest(with_added(dump, goal)) != certified.input_sha256:
        found.append(
            f"{dump.source}, with these options, is another state of the cluster than the plan was made for; "
            "--racks, --sizes, --down and --alive are to be those of the plan"
        )
    if sizes_digest(view, goal) != certified.sizes_sha256:
        found.append("the sizes in input.parquet are not those that the certificate was made for")
    if certified.isr_sha256 != isr_digest(view):
        found.append("who is in sync in input.parquet is not as the certificate was made for")
    counts = tally(view, goal, target, certificate)
    for name, value in attrs.asdict(counts).items():
        if certified.counts[name] != value:
            found.append(f"certificate.json says {name} is {certified.counts[name]}; it is {value}")
    batches, wrong = batches_of(folder, plan)
    planned = Planned(
        moved=plan, goal=goal, certificate=certificate, tally=counts, batches=batches, throttle=_throttle(folder)
    )
    found += [*wrong, *faults_of_files(folder, planned, certified.summary_sha256)]
    return Checked(folder=str(folder), tally=counts, faults=tuple(found))


def _view(path: Path, certified: Certified) -> ClusterView:
    """Return the input of the plan; raise InputError for a file that is not one, or would take too much memory."""
    try:
        with pq.ParquetFile(regular(path), read_dictionary=["topic"]) as file:
            _check_size(file.metadata)
            table = file.read(columns=list(COLUMNS))
        like = ClusterView(
            name="input", source=path.name, format="plan-input", brokers=certified.brokers, topics=certified.topics
        )
        return view_of_input(table, like)
    except InputError:
        raise
    except (pa.ArrowException, OSError, AttributeError, UsageError, ValueError, TypeError, OverflowError) as wrong:
        raise InputError(f"is not the input of a plan: {wrong}", source=path.name) from None


def _check_size(footer: pq.FileMetaData) -> None:
    """Raise ValueError, from the footer alone, for more rows, values or bytes than the input of a plan can have."""
    chunks = [
        footer.row_group(group).column(column)
        for group in range(footer.num_row_groups)
        for column in range(footer.num_columns)
    ]
    values: dict[str, int] = {}
    for chunk in chunks:
        values[chunk.path_in_schema] = values.get(chunk.path_in_schema, 0) + chunk.num_values
    for what, found, most in (
        ("rows", footer.num_rows, ROWS_MAX),
        ("values in a column", max(values.values(), default=0), VALUES_MAX),
        ("bytes when unpacked", sum(chunk.total_uncompressed_size for chunk in chunks), PAGES_BYTES_MAX),
    ):
        if found > most:
            raise ValueError(f"it has {found:,} {what}; at most {most:,} are read")


def _throttle(folder: Path) -> int | None:
    """Return the throttle that the summary states, None for none and for what is no rate."""
    try:
        found = parse_object(read_text(folder / SUMMARY), source=SUMMARY).get("throttle")
    except InputError:
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None
