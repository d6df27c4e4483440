"""Check the plan in a folder from the copy of its input: no solver is imported.

It decides whether plan.json is feasible and at its bound, whether its batches and its way back are the plan's, and
whether the copy is the input that the certificate names. Files are read as input: what cannot be read is an error,
what is wrong is a fault."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import RenderableType
from rich.text import Text

from broker.cluster import ClusterView
from broker.errors import InputError, UsageError
from broker.units import format_size
from placement.formats.certificates import Certified, digest, isr_digest, read_certificate, sizes_digest
from placement.planning.check import Tally, faults, tally
from placement.planning.given import target_rows
from placement.planning.goal import with_added
from placement.planning.input_table import view_of_input
from spark_analysis.cli.plan_files_check import faults_of_files, faults_of_summary, read_reassignment, read_text
from spark_analysis.report.figures import count, plural

CHECKED: Final = "check"


@attrs.frozen(kw_only=True)
class Checked:
    """Hold what the check of a folder found: counts, their bounds, and faults in sentences."""

    folder: str
    tally: Tally
    faults: tuple[str, ...]

    def summary(self) -> dict[str, Any]:
        """Return the findings for programs."""
        return {"is_right": not self.faults, **attrs.asdict(self.tally), "faults": list(self.faults)}

    def shown(self) -> Sequence[RenderableType]:
        """Return the findings for people."""
        if self.faults:
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

    Raises InputError for files that are missing or cannot be read.
    """
    certified = read_certificate(read_text(folder / "certificate.json"), source=str(folder / "certificate.json"))
    view, tells_isr = _view(folder, certified)
    goal, certificate = certified.goal, certified.certificate
    plan, refused = read_reassignment(folder / "plan.json", view)
    target = target_rows(view, plan.rows, plan.replicas)
    found = refused + list(faults(view, goal, target, certificate))
    if digest(view) != certified.input_sha256:
        found.append("input.parquet is not the input that the certificate was made for")
    if dump is not None and digest(with_added(dump, goal)) != certified.input_sha256:
        found.append(f"{dump.source}, with these options, is another state of the cluster than the plan was made for")
    if sizes_digest(view, goal) != certified.sizes_sha256:
        found.append("the sizes in input.parquet are not those that the certificate was made for")
    if certified.isr_sha256 not in (None, isr_digest(view)):
        found.append("who is in sync in input.parquet is not as the certificate was made for")
    found += faults_of_files(folder, plan, goal, tells_isr=tells_isr)
    counts = tally(view, goal, target, certificate)
    for name, value in attrs.asdict(counts).items():
        if name in certified.counts and certified.counts[name] != value:
            found.append(f"certificate.json says {name} is {certified.counts[name]}; it is {value}")
    found += faults_of_summary(folder, plan, counts, certified.summary_sha256)
    return Checked(folder=str(folder), tally=counts, faults=tuple(found))


def _view(folder: Path, certified: Certified) -> tuple[ClusterView, bool]:
    """Return the input of the plan, and whether it has the columns of ISRs, which older folders lack."""
    path = folder / "input.parquet"
    try:
        columns = ["topic", "partition", "replicas", "leader"]
        later = [name for name in ("isr", "offline") if name in pq.read_schema(path).names]
        wanted = [*columns, *later, *(["copy_bytes"] if certified.goal.by == "bytes" else [])]
        table = pq.read_table(path, columns=wanted)
        like = ClusterView(
            name="input", source=str(path), format="plan-input", brokers=certified.brokers, topics=certified.topics
        )
        return view_of_input(table, like), len(later) == 2
    except FileNotFoundError:
        raise InputError("is missing; a plan's folder has it", source=str(path)) from None
    except (pa.ArrowException, UsageError, ValueError) as wrong:
        raise InputError(f"is not the input of a plan: {wrong}", source=str(path)) from None
