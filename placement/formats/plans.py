"""Read a reassignment plan over a view: kafka-reassign-partitions JSON, topicmappr's maps, Cruise Control's proposals.

An entry is used or rejected with its reason; one that the view already fulfils is counted in `unchanged_count`.
kafka-reassign-partitions refuses a whole file for one rejected entry, and `refusal` says so. What --generate and
--execute print begins with the replicas before; --execute prints its plan behind them until 2.5 only.

Source: Kafka 4.3.1 ReassignPartitionsCommand (parseExecuteAssignmentArgs, executeAssignment), 2.5.1 the same; Cruise
Control ExecutionProposal, 2.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import PAD, ClusterView, Int32Array, PartitionTable
from broker.errors import InputError, NothingUsableError
from broker.ids import BrokerId
from broker.partition_faults import fault_of_ids
from placement.formats import reassign
from placement.formats.documents import (
    Document,
    brief,
    collect,
    collector_paused,
    find_documents,
    folded,
    parse_object,
)
from placement.formats.entries import Columns, Entry, EntryRows
from placement.formats.parsed import Reject, RowCounts
from placement.formats.rows import PartitionRows
from placement.formats.text import utf8_chunks
from placement.planning.reassignment import LogDirTarget, Reassignment

PROPOSALS: Final = "cruise-control-proposals"
PLAN_FORMATS: Final = (reassign.FORMAT, PROPOSALS)
_OF_PLANS: Final = ("proposed", "started")
"""What the tool prints before a plan: --generate proposes one, --execute has started it."""


@attrs.frozen(kw_only=True, eq=False)
class ParsedPlan:
    """Hold one plan over a view: rows_in == rows_analysed + rows_rejected, and `rejects` has every rejected entry.

    `unchanged_count` entries are fulfilled already; of `stale_count` entries the plan names other replicas before.
    `is_rollback` says that the file gives the replicas before a plan, to go back to, and no plan beside them.
    `notes` say what else the file holds, such as lines that are no JSON.
    """

    source: str
    format: str
    reassignment: Reassignment
    rejects: tuple[Reject, ...]
    rows_in: int
    rows_analysed: int
    rows_rejected: int
    unchanged_count: int
    stale_count: int
    is_rollback: bool = False
    lines_passed_over: int = 0
    notes: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        assert self.rows_in == self.rows_analysed + self.rows_rejected, self.source
        assert self.rows_rejected == len(self.rejects), self.source
        assert self.rows_analysed == self.reassignment.count, self.source

    @property
    def refusal(self) -> str | None:
        """Return why kafka-reassign-partitions --execute refuses the whole file, or None."""
        if not self.rejects or self.format != reassign.FORMAT:
            return None
        others = f" (and {self.rows_rejected - 1} more entries)" if self.rows_rejected > 1 else ""
        return f"kafka-reassign-partitions refuses the whole file {self.source}: {self.rejects[0].reason}{others}"


def read_plan(chunks: Iterable[bytes], *, source: str, view: ClusterView) -> ParsedPlan:
    """Return the plan in the bytes of one file over `view`.

    Raises InputError for a file that is no plan, NothingUsableError if no entry can be used. Cost: O(P) for the P
    partitions of the view, and some microseconds an entry.
    """
    text = collect(utf8_chunks(chunks), source=source)
    with collector_paused():
        return _read(text, source, view)


def _read(text: str, source: str, view: ClusterView) -> ParsedPlan:
    found = find_documents(text, source=source).known(lambda value: reassign.is_reassignment(value))
    if not found.documents:
        raise InputError(f"holds no JSON object; a plan is {' or '.join(PLAN_FORMATS)}", source=source)
    if all(reassign.is_reassignment(document.value) for document in found.documents):
        before, plan = _proposed(found.documents, source)
        reassign.check_version(plan, source)
        entries = _some(plan.value["partitions"], "partition; kafka-reassign-partitions refuses an empty list", source)
        rows = _PlanRows(view, found.row_counts(source, reassign.FORMAT))
        rows.read_reassignment(entries)
        read = rows.close({} if before is None else _listed(before.value["partitions"]))
        return attrs.evolve(read, is_rollback=before is None and "current" in plan.caption.lower())
    if len(found.documents) > 1:
        raise InputError("a second document in a plan", source=source, line=found.documents[1].line)
    rows = _PlanRows(view, found.row_counts(source, PROPOSALS))
    rows.read_proposals(_some(_proposals(found.documents[0], source), "proposal", source))
    return rows.close({})


def _some(entries: list[Any], what: str, source: str) -> list[Any]:
    """Return the entries of a plan; raise NothingUsableError if there are none."""
    if not entries:
        raise NothingUsableError(f"the plan has no {what}", source=source)
    return entries


def _proposed(documents: tuple[Document, ...], source: str) -> tuple[Document | None, Document]:
    """Return the state before, if the file gives it, and the plan."""
    if len(documents) == 1:
        return None, documents[0]
    captions = [document.caption.lower() for document in documents]
    if len(documents) == 2 and "current" in captions[0] and any(word in captions[1] for word in _OF_PLANS):
        return documents[0], documents[1]
    what = f"{len(documents)} plans in one file; give each batch a file of its own, in their order"
    raise InputError(what, source=source, line=documents[1].line)


def _listed(entries: list[Any]) -> dict[tuple[str, str], list[Any]]:
    """Return the replicas by topic and partition that a document gives as the state before."""
    lists = [item for item in entries if isinstance(item, dict) and isinstance(item.get("replicas"), list)]
    return {(str(item.get("topic")), str(item.get("partition"))): item["replicas"] for item in lists}


def _proposals(document: Document, source: str) -> list[Any]:
    """Return the proposals of a Cruise Control answer, also of one inside a /user_tasks envelope."""
    answers = [document.value]
    tasks = folded(document.value).get("usertasks")
    if isinstance(tasks, list):
        texts = [folded(task).get("originalresponse") for task in tasks]
        answers = [parse_object(text, source=source) for text in texts if isinstance(text, str)]
    listed = [found for found in (folded(answer).get("proposals") for answer in answers) if isinstance(found, list)]
    if len(listed) == 1:
        return listed[0]
    if len(listed) > 1:
        raise InputError(f"{len(listed)} answers with proposals; a plan is one of them", source=source)
    if any({"summary", "goalsummary"} & folded(answer).keys() for answer in answers):
        what = "a Cruise Control answer without proposals; ask for it with json=true and verbose=true"
        raise InputError(what, source=source, line=document.line)
    what = f"a JSON object that is no plan; a plan is {' or '.join(PLAN_FORMATS)}"
    raise InputError(what, source=source, line=document.line, value=brief(document.value))


class _PlanRows:
    """Gather the entries of one plan: their rows in the view, targets and directories."""

    def __init__(self, view: ClusterView, row_counts: RowCounts) -> None:
        self._view = view
        self._entries = EntryRows(row_counts, PartitionRows(row_counts.source), self._fault, self._fits)
        table = view.partitions
        self._index = {topic.name: number for number, topic in enumerate(view.topics)}
        self._brokers = frozenset(view.broker_ids.tolist())
        keys = table.topic_index.astype(np.int64) << 32 | table.partition_ids
        self._rows = dict(zip(keys.tolist(), range(table.count), strict=True))
        self._dirs: dict[int, Sequence[str]] = {}
        self._before: dict[int, Any] = {}

    def read_reassignment(self, entries: list[Any]) -> None:
        """Add the entries of a kafka-reassign-partitions document."""

        def add(place: str, raw: Any) -> None:
            entry, dirs = reassign.entry_of(place, raw)
            if self._entries.add(entry) and dirs:
                self._dirs[len(self._entries.places) - 1] = dirs

        self._entries.add_reassignments("", entries, add)

    def read_proposals(self, entries: list[Any]) -> None:
        """Add the proposals of a Cruise Control answer."""
        for number, raw in enumerate(entries):
            item = folded(raw)
            partition, old = folded(item.get("topicpartition")), item.get("oldreplicas")
            named = partition.get("topic"), partition.get("partition"), item.get("newreplicas")
            if self._entries.add(Entry(f"proposals[{number}]", raw, *named, fault=fault_of_ids(old, "oldReplicas"))):
                self._before[len(self._entries.places) - 1] = old

    def _fits(self, found: Columns) -> bool:
        """Return whether the view has all these partitions and brokers."""
        topic = np.array([self._index.get(name, -1) for name in found.topics], dtype=np.int64)
        keys = (topic << 32 | found.partitions).tolist()
        return self._rows.keys() >= set(keys) and {PAD, *self._brokers}.issuperset(found.replicas.ravel().tolist())

    def _fault(self, entry: Entry) -> str | None:
        """Return why the view has no such partition, or no such broker, or None."""
        cluster = self._view.name
        if entry.topic not in self._index:
            return f"topic {entry.topic} is not in cluster {cluster}"
        if not self._brokers.issuperset(entry.replicas):
            stranger = next(broker for broker in entry.replicas if broker not in self._brokers)
            return f"broker {stranger} is not in cluster {cluster}; --add or --racks names one that holds nothing"
        topic = self._index[entry.topic]
        if topic << 32 | entry.partition in self._rows:
            return None
        count = int(np.count_nonzero(self._view.partitions.topic_index == topic))
        listed = "" if self._view.partitions_complete else "; the dump lists only some partitions"
        return f"topic {entry.topic} has no partition {entry.partition} among its {count} in the cluster{listed}"

    def close(self, before: dict[tuple[str, str], list[Any]]) -> ParsedPlan:
        """Return the plan; `before` are the replicas that the plan's own file gives as the state before."""
        closed = self._entries.close()
        account = self._entries.row_counts.dump(())  # Raises where nothing can be used.
        kept = closed.line.tolist()
        targets = closed.table.replicas
        dirs = tuple(self._log_dirs(kept, targets))
        plan = Reassignment(view=self._view, rows=self._rows_of(closed.table), replicas=targets, log_dirs=dirs)
        changes = plan.changes.copy()
        changes[[each.place for each in plan.log_dirs]] = True
        return ParsedPlan(
            source=account.source,
            format=account.format,
            reassignment=plan,
            rejects=account.rejects,
            rows_in=account.rows_in,
            rows_analysed=account.rows_analysed,
            rows_rejected=account.rows_rejected,
            unchanged_count=int(np.count_nonzero(~changes)),
            stale_count=self._stale_count(plan, kept, before),
            lines_passed_over=account.lines_passed_over,
            notes=account.notes,
        )

    def _rows_of(self, table: PartitionTable) -> list[int]:
        topics = np.array([self._index[name] for name in self._entries.rows.topics], dtype=np.int64)
        keys = topics[table.topic_index] << 32 | table.partition_ids
        return [self._rows[key] for key in keys.tolist()]

    def _log_dirs(self, kept: list[int], targets: Int32Array) -> Iterator[LogDirTarget]:
        for place, line in enumerate(kept if self._dirs else ()):
            for broker, path in zip(targets[place].tolist(), self._dirs.get(line, ()), strict=False):
                if path != "any":
                    yield LogDirTarget(place=place, broker_id=BrokerId(broker), path=path)

    def _stale_count(self, plan: Reassignment, kept: list[int], before: dict[tuple[str, str], list[Any]]) -> int:
        """Return how many entries name other brokers as the replicas before than the view does."""
        stale, table = 0, self._view.partitions
        for place, line in enumerate(kept if before or self._before else ()):
            given = self._before.get(line)
            if before:
                row = int(plan.rows[place])
                name = self._view.topics[int(table.topic_index[row])].name
                given = before.get((name, str(int(table.partition_ids[row]))), given)
            if given is not None:
                stale += {each for each in plan.current[place].tolist() if each >= 0} != set(given)
        return stale
