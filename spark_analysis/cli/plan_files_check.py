"""Check the files beside a plan: batches, elections, the way back, the commands, and the summary.

What it decides: whether each of these files is what plan, input and goal make of it.

A batch has entries of plan.json, each in one batch, as kafka-reassign-partitions prints them: with their version and
log_dirs, which Kafka takes for 1 and "any" where they are gone, but this program writes. An election has exactly the
partitions that the preferred leader does not lead once their batch is complete; that of others those which no batch
changes and the plan counts as led by their preferred leader. The commands carry out each batch once, and run each
election once, after its batch.

Constraints: who is in sync decides which elections are needed. Of a folder of before, whose input does not tell, only
the elections of new first replicas are known, which are in sync when their reassignment ends.

Example: an emptied preferred-election-01.json gives "preferred-election-01.json: orders-0 is missing".

Left out: of commands.txt the tools, their options, and the way back.

Source: Kafka 4.3.1 ReassignPartitionsCommand (parsePartitionReassignmentData), LeaderElectionCommand.
"""

from __future__ import annotations

import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import ClusterView
from broker.errors import InputError, NothingUsableError
from placement.formats.certificates import COUNTED_LATER, summary_digest
from placement.formats.documents import parse_object
from placement.formats.plan_files import needs_election
from placement.formats.plans import read_plan
from placement.planning.check import Tally
from placement.planning.completion import OTHERS, completion, elected_besides
from placement.planning.goal import Goal
from placement.planning.reassignment import Reassignment
from spark_analysis.report.figures import plural

_FILE_BYTES_MAX: Final = 2 << 30


def read_reassignment(path: Path, view: ClusterView) -> tuple[Reassignment, list[str]]:
    """Return the plan in a file, and what is wrong with its form; one without entries changes nothing."""
    text = read_text(path)
    nothing = Reassignment(view=view, rows=[], replicas=np.empty((0, 1), dtype=np.int32))
    if text.replace(" ", "").strip() == '{"version":1,"partitions":[]}':
        return nothing, []
    try:
        read = read_plan([text.encode()], source=str(path), view=view)
    except NothingUsableError as refused:
        return nothing, [f"{path.name}: {refused.what}"]
    faults = [f"{path.name}: {reject.reason}" for reject in read.rejects]
    if not faults:
        faults += _faults_of_form(path.name, text, read.reassignment)
    return read.reassignment, faults


def faults_of_files(folder: Path, plan: Reassignment, goal: Goal, *, tells_isr: bool) -> list[str]:
    """Return what is wrong with batches, elections, commands and the way back.

    `tells_isr` is whether the input of the plan tells who is in sync.
    """
    batches = sorted(folder.glob("batch-*.json"))
    wanted = {int(row): plan.replicas[place] for place, row in enumerate(plan.rows.tolist())}
    found: list[str] = list(_faults_of_commands(folder, batches))
    seen: set[int] = set()
    for path in batches:
        part, refused = read_reassignment(path, plan.view)
        found += refused
        for place, row in enumerate(part.rows.tolist()):
            if row in seen:
                found.append(f"{path.name}: {part.name(place)} is in an earlier batch too")
            elif row not in wanted or _held(wanted[row]) != _held(part.replicas[place]):
                found.append(f"{path.name}: {part.name(place)} is not as in plan.json")
            seen.add(row)
        found += _faults_of_election(folder, path.name, part, tells_isr)
    missing = len(set(wanted) - seen)
    if missing:
        found.append(f"{plural(missing, 'partition')} of plan.json is in no batch")
    named = {_election_of(path.name) for path in batches} | {OTHERS}
    strangers = sorted(path.name for path in folder.glob("preferred-election-*.json") if path.name not in named)
    found += [f"{name} is of no batch" for name in strangers]
    besides = _names(elected_besides(plan, goal))
    found += _faults_of_listed(folder, OTHERS, besides, besides)
    back, refused = read_reassignment(folder / "rollback.json", plan.view)
    found += refused
    if set(back.rows.tolist()) != set(wanted) or bool(back.changes.any()):
        found.append("rollback.json does not bring every partition of plan.json back")
    return found


def faults_of_summary(folder: Path, plan: Reassignment, counts: Tally, sha256: str | None) -> list[str]:
    """Return the faults of summary.json; a folder without this file has none.

    `sha256` is the digest that the certificate has of it, None in one of before.
    """
    path = folder / "summary.json"
    if not path.exists():
        return []
    summary, view = parse_object(read_text(path), source=str(path)), plan.view
    known = {
        "broker_count": len(view.brokers),
        "partition_count": view.partitions.count,
        "replica_count": view.partitions.replica_count,
        "changed_partition_count": plan.count,
        **attrs.asdict(counts),
        "is_least": counts.is_least,
        "batch_count": len(list(folder.glob("batch-*.json"))),
    }
    if counts.moved_bytes is None:
        del known["moved_bytes"]  # By replicas no part of the proof; the summary has them where sizes are known.
    lacking = [name for name in known if name not in summary and name not in COUNTED_LATER]
    wrong = {name: value for name, value in known.items() if name in summary and summary[name] != value}
    found = [f"summary.json does not say {name}" for name in lacking]
    found += [f"summary.json says {name} is {summary[name]}; it is {value}" for name, value in wrong.items()]
    if sha256 is not None and not found and summary_digest(summary) != sha256:
        found.append("summary.json is not the one that the certificate was written with")
    return found


def read_text(path: Path) -> str:
    """Return the text of a file; raise InputError for one that is missing, too large or not UTF-8."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):  # A pipe would be waited for, a device has no end.
            raise InputError("is not a regular file", source=str(path))
        if found.st_size > _FILE_BYTES_MAX:
            raise InputError(f"is larger than {_FILE_BYTES_MAX:,} bytes", source=str(path))
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError("is missing; a plan's folder has it", source=str(path)) from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8", source=str(path)) from None


def _faults_of_form(name: str, text: str, read: Reassignment) -> Iterator[str]:
    """Yield faults of fields that kafka-reassign-partitions assumes: the version and the log directories."""
    if re.search(r'"version"\s*:\s*1\b', text) is None:
        yield f"{name} states no version, which is 1"
    lacking = read.count - text.count('"log_dirs"')  # No name of a topic has a quotation mark.
    if lacking:
        entries = "entry" if read.count == 1 else "entries"
        yield f"{name}: {lacking} of {read.count} {entries} state{'s' * (lacking == 1)} no log_dirs"
    if read.log_dirs:
        yield f"{name} names log directory {read.log_dirs[0].path}; a plan names none"


def _faults_of_commands(folder: Path, batches: Sequence[Path]) -> Iterator[str]:
    """Yield the batches and elections that commands.txt does not run once, that are not there, or stand too early."""
    path = folder / "commands.txt"
    if not path.exists():
        return
    text = read_text(path)
    executed = re.findall(r"(batch-\d+\.json) --execute", text)
    elected = re.findall(r"--path-to-json-file (\S+)", text)
    elections = [one.name for one in folder.glob("preferred-election-*.json")]
    for verb, named, known in (
        ("carries out", executed, [batch.name for batch in batches]),
        ("runs", elected, elections),
    ):
        times = Counter(named)
        for name in sorted({*known, *named}):
            if times[name] != 1 or name not in known:
                there = "" if name in known else ", which is not there"
                yield f"commands.txt {verb} {name} {plural(times[name], 'time')}{there}"
    for batch in batches:
        election = _election_of(batch.name)
        if text.rfind(election) >= 0 and text.find(election) < text.find(f"{batch.name} --execute"):
            yield f"commands.txt runs {election} before {batch.name}"


def _faults_of_election(folder: Path, batch: str, part: Reassignment, tells_isr: bool) -> list[str]:
    """Return what is wrong with the election after a batch: partitions that need none, or one that is missing."""
    needed, allowed = needs_election(part, completion(part)), np.arange(part.count)
    if tells_isr:
        allowed = needed
    else:  # A new replica is in sync when its reassignment ends; of others the input does not say it.
        needed = needed[part.added[needed, 0] & (part.view.partitions.leader is not None)]
    return _faults_of_listed(folder, _election_of(batch), _names(part.take(needed)), _names(part.take(allowed)))


def _faults_of_listed(
    folder: Path, name: str, needed: list[tuple[str, int]], allowed: list[tuple[str, int]]
) -> list[str]:
    """Return the first partition of an election that is listed twice, is not allowed, or is needed and missing."""
    try:
        listed = parse_object(read_text(folder / name), source=name)["partitions"] if (folder / name).exists() else []
        elected = [(str(each["topic"]), int(each["partition"])) for each in listed]
    except (KeyError, TypeError, ValueError):
        return [f"{name} is no list of partitions for kafka-leader-election"]
    twice = sorted(one for one, times in Counter(elected).items() if times > 1)
    found = [f"{name}: {topic}-{number} is listed twice" for topic, number in twice[:1]]
    found += [
        f"{name}: {topic}-{number} needs no election" for topic, number in sorted(set(elected) - set(allowed))[:1]
    ]
    found += [f"{name}: {topic}-{number} is missing" for topic, number in sorted(set(needed) - set(elected))[:1]]
    return found


def _names(plan: Reassignment) -> list[tuple[str, int]]:
    table = plan.view.partitions
    topics, numbers = table.topic_index[plan.rows].tolist(), table.partition_ids[plan.rows].tolist()
    return [(plan.view.topics[topic].name, number) for topic, number in zip(topics, numbers, strict=True)]


def _election_of(batch: str) -> str:
    return batch.replace("batch", "preferred-election")


def _held(row: Any) -> list[int]:
    return [number for number in row.tolist() if number >= 0]
