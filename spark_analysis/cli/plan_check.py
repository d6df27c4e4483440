"""Check the plan in a folder from the copy of its input: no solver is imported.

What it decides: whether plan.json is feasible and at its bound, whether its batches and its way back are the plan's,
and whether the copy is the input that the certificate names.

Constraints: files are read as input: what cannot be read is an error, what is wrong is a fault.

Example: a folder whose plan.json was edited gives "replicas: broker 3 holds 9, outside 7 to 8".

Left out: Kafka's own parsing of the files (tests/kafka); of commands.txt all but which batches it carries out; the
page, the tables beside the input, and answer.json.

Source: ours.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import RenderableType
from rich.text import Text

from broker.cluster import ClusterView
from broker.errors import InputError, NothingUsableError, UsageError
from broker.units import format_size
from placement.formats.certificates import Certified, digest, read_certificate, sizes_digest
from placement.formats.documents import parse_object
from placement.formats.plans import read_plan
from placement.reassignment.check import Tally, faults, tally, target_rows
from placement.reassignment.goal import with_added
from placement.reassignment.input_table import view_of_input
from placement.reassignment.reassignment import Reassignment
from spark_analysis.report.figures import count, plural

CHECKED: Final = "check"
_FILE_BYTES_MAX: Final = 2 << 30


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
    return f"within its band of bytes, {100 * found.moved_bytes_gap:.2f} % above its bound"


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
    certified = read_certificate(_text(folder / "certificate.json"), source=str(folder / "certificate.json"))
    view = _view(folder, certified)
    goal, certificate = certified.goal, certified.certificate
    plan, refused = _reassignment(folder / "plan.json", view)
    target = target_rows(view, plan.rows, plan.replicas)
    found = refused + list(faults(view, goal, target, certificate))
    if digest(view) != certified.input_sha256:
        found.append("input.parquet is not the input that the certificate was made for")
    if dump is not None and digest(with_added(dump, goal)) != certified.input_sha256:
        found.append(f"{dump.source}, with these options, is another state of the cluster than the plan was made for")
    if sizes_digest(view, goal) != certified.sizes_sha256:
        found.append("the sizes in input.parquet are not those that the certificate was made for")
    found += _faults_of_files(folder, view, plan)
    counts = tally(view, goal, target, certificate)
    told = _summary(folder)
    for name, value in attrs.asdict(counts).items():
        if name in certified.counts and certified.counts[name] != value:
            found.append(f"certificate.json says {name} is {certified.counts[name]}; it is {value}")
        if name == "moved_bytes" and value is None:
            continue  # By replicas bytes are no part of the proof; the summary has them where sizes are known.
        if name in told and told[name] != value:
            found.append(f"summary.json says {name} is {told[name]}; it is {value}")
    return Checked(folder=str(folder), tally=counts, faults=tuple(found))


def _view(folder: Path, certified: Certified) -> ClusterView:
    path = folder / "input.parquet"
    try:
        columns = ["topic", "partition", "replicas", "leader"]
        table = pq.read_table(path, columns=[*columns, "copy_bytes"] if certified.goal.by == "bytes" else columns)
        like = ClusterView(
            name="input", source=str(path), format="plan-input", brokers=certified.brokers, topics=certified.topics
        )
        return view_of_input(table, like)
    except FileNotFoundError:
        raise InputError("is missing; a plan's folder has it", source=str(path)) from None
    except (pa.ArrowException, UsageError, ValueError) as wrong:
        raise InputError(f"is not the input of a plan: {wrong}", source=str(path)) from None


def _reassignment(path: Path, view: ClusterView) -> tuple[Reassignment, list[str]]:
    """Return the plan in a file, and what Kafka would refuse of it; one without entries changes nothing."""
    text = _text(path)
    nothing = Reassignment(view=view, rows=[], replicas=np.empty((0, 1), dtype=np.int32))
    if text.replace(" ", "").strip() == '{"version":1,"partitions":[]}':
        return nothing, []
    try:
        read = read_plan([text.encode()], source=str(path), view=view)
    except NothingUsableError as refused:
        return nothing, [f"{path.name}: {refused.what}"]
    return read.reassignment, [f"{path.name}: {reject.reason}" for reject in read.rejects]


def _summary(folder: Path) -> dict[str, Any]:
    """Return the numbers in summary.json; none if a folder has no such file."""
    path = folder / "summary.json"
    return parse_object(_text(path), source=str(path)) if path.exists() else {}


def _faults_of_commands(folder: Path, batches: Sequence[Path]) -> Iterator[str]:
    """Yield the batches that commands.txt does not carry out once, and those that it names though there are none."""
    path = folder / "commands.txt"
    if not path.exists():
        return
    carried_out = Counter(re.findall(r"(batch-\d+\.json) --execute", _text(path)))
    for name in sorted({batch.name for batch in batches} | carried_out.keys()):
        known = any(batch.name == name for batch in batches)
        if carried_out[name] != 1 or not known:
            times = f"carries out {name} {plural(carried_out[name], 'time')}"
            yield f"commands.txt {times}" + ("" if known else ", which is not there")


def _faults_of_files(folder: Path, view: ClusterView, plan: Reassignment) -> list[str]:
    """Return what is wrong with the batches and with the way back."""
    batches = sorted(folder.glob("batch-*.json"))
    wanted = {int(row): plan.replicas[place] for place, row in enumerate(plan.rows.tolist())}
    found: list[str] = list(_faults_of_commands(folder, batches))
    seen: set[int] = set()
    for path in batches:
        part, refused = _reassignment(path, view)
        found += refused
        for place, row in enumerate(part.rows.tolist()):
            if row in seen:
                found.append(f"{path.name}: {part.name(place)} is in an earlier batch too")
            elif row not in wanted or _held(wanted[row]) != _held(part.replicas[place]):
                found.append(f"{path.name}: {part.name(place)} is not as in plan.json")
            seen.add(row)
        found += _faults_of_election(folder, path.name, view, part)
    missing = len(set(wanted) - seen)
    if missing:
        found.append(f"{plural(missing, 'partition')} of plan.json is in no batch")
    back, refused = _reassignment(folder / "rollback.json", view)
    found += refused
    if set(back.rows.tolist()) != set(wanted) or bool(back.changes.any()):
        found.append("rollback.json does not bring every partition of plan.json back")
    return found


def _faults_of_election(folder: Path, batch: str, view: ClusterView, part: Reassignment) -> list[str]:
    """Return what is wrong with the election after a batch: partitions of others, or one that is left out."""
    name = batch.replace("batch", "preferred-election")
    try:
        listed = parse_object(_text(folder / name), source=name)["partitions"] if (folder / name).exists() else []
        elected = {(str(each["topic"]), int(each["partition"])) for each in listed}
    except (KeyError, TypeError, ValueError):
        return [f"{name} is no list of partitions for kafka-leader-election"]
    table = view.partitions
    keys = [
        (view.topics[topic].name, number)
        for topic, number in zip(
            table.topic_index[part.rows].tolist(), table.partition_ids[part.rows].tolist(), strict=True
        )
    ]
    found = [f"{name}: {topic}-{number} is not in {batch}" for topic, number in sorted(elected - set(keys))[:1]]
    if table.leader is None:
        return found
    leader = table.leader[part.rows]
    unfenced = np.array([one.id for one in view.brokers if one.is_active], dtype=np.int32)
    stays = (part.replicas[:, 1:] == leader[:, None]).any(axis=1) & (leader >= 0) & np.isin(leader, unfenced)
    # A new replica is in sync when its reassignment ends; of others the input does not say it.
    new = part.added[:, 0] & np.isin(part.replicas[:, 0], unfenced)
    needed = {keys[place] for place in np.flatnonzero(stays & new).tolist()}
    found += [f"{name}: {topic}-{number} is missing" for topic, number in sorted(needed - elected)[:1]]
    return found


def _held(row: Any) -> list[int]:
    return [number for number in row.tolist() if number >= 0]


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _FILE_BYTES_MAX:
            raise InputError(f"is larger than {_FILE_BYTES_MAX:,} bytes", source=str(path))
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError("is missing; a plan's folder has it", source=str(path)) from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8", source=str(path)) from None
