"""Read a reassignment plan over a view: kafka-reassign-partitions JSON, topicmappr's maps, Cruise Control's proposals.

What it decides: which entries of a plan are partitions of the view with a target that Kafka would take, and what the
plan says of the state that it was made for.

Constraints: an entry is used or rejected with its reason, and the counts add up. An entry that the view already fulfils
is used and counted in `unchanged_count`. Nothing is mended: kafka-reassign-partitions refuses a whole file for one
rejected entry, and `refusal` says so.

Source: Kafka 4.3.1 ReassignPartitionsCommand (parseExecuteAssignmentArgs); Cruise Control ExecutionProposal, 2.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import PAD, ClusterView, Int32Array, Int64Array
from broker.errors import InputError, NothingUsableError
from broker.ids import BrokerId
from placement.formats import reassign
from placement.formats.checks import PARTITION_ID_MAX, fault_of_ids, fault_of_number, fault_of_topic_name
from placement.formats.documents import (
    Document,
    brief,
    collect_bytes,
    collector_paused,
    find_documents,
    folded,
    parse_object,
)
from placement.formats.parsed import Reject, RowCounts
from placement.formats.plan_columns import PlanColumns, plan_columns
from placement.formats.text import escaped, utf8_chunks
from placement.planning.reassignment import LogDirTarget, Reassignment

PROPOSALS: Final = "cruise-control-proposals"
PLAN_FORMATS: Final = (reassign.FORMAT, PROPOSALS)
COLUMNS_BYTES_MIN: Final = 1 << 20  # Below, entry by entry is as fast as loading Arrow.


@attrs.frozen(kw_only=True, eq=False)
class ParsedPlan:
    """Hold one plan over a view: rows_in == rows_analysed + rows_rejected, and `rejects` has every rejected entry.

    `unchanged_count` entries are fulfilled already; of `stale_count` entries the plan names other replicas before.
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

    Raises InputError for a file that is no plan, NothingUsableError if no entry can be used. Cost: O(P log P) for the
    P partitions of the view, and a microsecond an entry, some more where an entry is rejected.
    """
    data = collect_bytes(utf8_chunks(chunks), source=source)
    columns = plan_columns(data) if len(data) >= COLUMNS_BYTES_MIN else None
    at_once = None if columns is None else _PlanRows(view, RowCounts(source, reassign.FORMAT)).read_columns(columns)
    if at_once is not None:
        return at_once
    with collector_paused():
        return _read_entries(escaped(data), source, view)


def _read_entries(text: str, source: str, view: ClusterView) -> ParsedPlan:
    found = find_documents(text, source=source)
    if not found.documents:
        raise InputError(f"holds no JSON object; a plan is {' or '.join(PLAN_FORMATS)}", source=source)
    if all(reassign.is_reassignment(document.value) for document in found.documents):
        before, plan = _proposed(found.documents, source)
        reassign.check_version(plan, source)
        entries = _some(plan.value["partitions"], "partition; kafka-reassign-partitions refuses an empty list", source)
        rows = _PlanRows(view, RowCounts(source, reassign.FORMAT))
        rows.read_reassignment(entries)
        return rows.close(() if before is None else before.value["partitions"])
    if len(found.documents) > 1:
        raise InputError("a second document in a plan", source=source, line=found.documents[1].line)
    proposals = _some(_proposals(found.documents[0], source), "proposal", source)
    rows = _PlanRows(view, RowCounts(source, PROPOSALS))
    rows.read_proposals(proposals)
    return rows.close(())


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
    if len(documents) == 2 and "current" in captions[0] and "proposed" in captions[1]:
        return documents[0], documents[1]
    what = f"{len(documents)} plans in one file; give each batch a file of its own, in their order"
    raise InputError(what, source=source, line=documents[1].line)


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
        self._counts = row_counts
        self._index = {topic.name: number for number, topic in enumerate(view.topics)}
        self._known = {int(number) for number in view.broker_ids.tolist()}
        table = view.partitions
        keys = table.topic_index.astype(np.int64) << 32 | table.partition_ids
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        self._places: list[str] = []
        self._raws: list[Any] = []
        self._wanted: list[int] = []
        self._targets: list[list[int]] = []
        self._before: list[list[int] | None] = []
        self._dirs: list[list[str] | None] = []

    def read_reassignment(self, entries: list[Any]) -> None:
        """Add the entries of a kafka-reassign-partitions document."""
        for number, raw in enumerate(entries):
            item = raw if isinstance(raw, dict) else {}
            dirs, replicas = item.get("log_dirs"), item.get("replicas")
            fault = None if dirs is None else reassign.fault_of_dirs(dirs, replicas)
            self._add(f"partitions[{number}]", raw, (item.get("topic"), item.get("partition"), replicas), fault, dirs)

    def read_columns(self, found: PlanColumns) -> ParsedPlan | None:
        """Return the plan in columns if every entry is as it should be, else None."""
        topics = np.array([self._index.get(name, -1) for name in found.topics], dtype=np.int64)
        matrix, partition = found.replicas, found.partition
        if not 0 <= partition.min() <= partition.max() <= PARTITION_ID_MAX:
            return None
        ordered = np.sort(matrix, axis=1)
        is_twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
        known = {PAD, *self._known}
        if is_twice.any() or not known.issuperset(np.unique(ordered).tolist()):
            return None
        wanted = topics[found.topic] << 32 | partition
        if not all(self._exists(wanted)):
            return None
        rows = np.asarray(self._order[np.searchsorted(self._keys, wanted)], dtype=np.int64)
        if np.bincount(rows).max() > 1:
            return None
        self._counts.rows_analysed = rows.size
        return self._parsed(Reassignment(view=self._view, rows=rows, replicas=matrix), stale_count=0)

    def read_proposals(self, entries: list[Any]) -> None:
        """Add the proposals of a Cruise Control answer."""
        for number, raw in enumerate(entries):
            item = folded(raw)
            partition = folded(item.get("topicpartition"))
            old = item.get("oldreplicas")
            fault = fault_of_ids(old, "oldReplicas")
            named = (partition.get("topic"), partition.get("partition"), item.get("newreplicas"))
            self._add(f"proposals[{number}]", raw, named, fault, None, old)

    def _add(
        self,
        place: str,
        raw: Any,
        named: tuple[Any, Any, Any],
        fault: str | None,
        dirs: list[str] | None,
        before: list[int] | None = None,
    ) -> None:
        topic, partition, replicas = named
        fault = self._fault(topic, partition, replicas) or fault
        if fault:
            self._counts.reject(f"{place}: {fault}", brief(raw))
            return
        self._places.append(place)
        self._raws.append(raw)
        self._wanted.append(self._index[topic] << 32 | partition)
        self._targets.append(replicas)
        self._before.append(before)
        self._dirs.append(dirs if dirs is not None and any(path != "any" for path in dirs) else None)

    def _fault(self, topic: Any, partition: Any, replicas: Any) -> str | None:
        """Return why an entry cannot be used, or None; whether the partition exists is asked for all at once."""
        # The common case first, as a plan may have a million entries.
        plain = type(topic) is str and type(partition) is int and 0 <= partition <= PARTITION_ID_MAX
        if plain and topic in self._index and type(replicas) is list and replicas:
            distinct = set(replicas) if set(map(type, replicas)) == {int} else set()
            if len(distinct) == len(replicas) and distinct <= self._known:
                return None
        fault = (
            fault_of_topic_name(topic)
            or fault_of_number(partition, "partition", high=PARTITION_ID_MAX)
            or fault_of_ids(replicas, "replicas")
        )
        if fault:
            return fault
        if not replicas:
            return "the list of replicas is empty"
        if topic not in self._index:
            return f"topic {topic} is not in cluster {self._view.name}"
        stranger = next((broker for broker in replicas if broker not in self._known), None)
        if stranger is None:
            return None
        return f"broker {stranger} is not in cluster {self._view.name}; --add or --racks names one that holds nothing"

    def close(self, before: Iterable[Any]) -> ParsedPlan:
        """Return the plan; `before` are the entries that the plan's own file gives as the state before."""
        kept = self._found()
        dirs = tuple(self._log_dirs(kept))
        targets = _matrix([self._targets[entry] for entry in kept])
        self._counts.rows_analysed = len(kept)
        self._counts.dump(())  # Raises where nothing can be used.
        plan = Reassignment(view=self._view, rows=self._rows_of(kept), replicas=targets, log_dirs=dirs)
        return self._parsed(plan, stale_count=self._stale_count(plan, kept, before))

    def _parsed(self, plan: Reassignment, *, stale_count: int) -> ParsedPlan:
        account = self._counts.dump(())
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
            stale_count=stale_count,
        )

    def _found(self) -> list[int]:
        """Return the entries whose partition is in the view, the first of each partition; reject the others."""
        exist = self._exists(np.array(self._wanted, dtype=np.int64))
        kept: list[int] = []
        first: dict[int, int] = {}
        for entry, key in enumerate(self._wanted):
            if not exist[entry]:
                self._reject(entry, self._absent(key))
            elif first.setdefault(key, entry) != entry:
                what = f"partition {key & 0xFFFF_FFFF} of {self._view.topics[key >> 32].name}"
                self._reject(entry, f"{what} is already given by {self._places[first[key]]}")
            else:
                kept.append(entry)
        return kept

    def _exists(self, wanted: Int64Array) -> list[bool]:
        if not self._keys.size:
            return [False] * wanted.size
        found = np.minimum(np.searchsorted(self._keys, wanted), self._keys.size - 1)
        exist: list[bool] = (self._keys[found] == wanted).tolist()
        return exist

    def _absent(self, key: int) -> str:
        name = self._view.topics[key >> 32].name
        count = int(np.count_nonzero(self._view.partitions.topic_index == key >> 32))
        listed = "" if self._view.partitions_complete else "; the dump lists only some partitions"
        return f"topic {name} has no partition {key & 0xFFFF_FFFF} among its {count} in the cluster{listed}"

    def _reject(self, entry: int, reason: str) -> None:
        self._counts.reject(f"{self._places[entry]}: {reason}", brief(self._raws[entry]))

    def _rows_of(self, kept: list[int]) -> Int64Array:
        wanted = np.array([self._wanted[entry] for entry in kept], dtype=np.int64)
        return np.asarray(self._order[np.searchsorted(self._keys, wanted)], dtype=np.int64)

    def _log_dirs(self, kept: list[int]) -> Iterator[LogDirTarget]:
        for place, entry in enumerate(kept):
            for broker, path in zip(self._targets[entry], self._dirs[entry] or (), strict=False):
                if path != "any":
                    yield LogDirTarget(place=place, broker_id=BrokerId(broker), path=path)

    def _stale_count(self, plan: Reassignment, kept: list[int], before: Iterable[Any]) -> int:
        """Return how many entries name other brokers as the replicas before than the view does."""
        told: dict[tuple[Any, Any], Any] = {}
        for item in before:
            if isinstance(item, dict) and isinstance(item.get("replicas"), list):
                told[str(item.get("topic")), str(item.get("partition"))] = item["replicas"]
        stale, table = 0, self._view.partitions
        for place, entry in enumerate(kept):
            said = self._before[entry]
            if told:
                row = int(plan.rows[place])
                name = self._view.topics[int(table.topic_index[row])].name
                said = told.get((name, str(int(table.partition_ids[row]))), said)
            if said is not None:
                stale += {each for each in plan.current[place].tolist() if each >= 0} != set(said)
        return stale


def _matrix(targets: list[list[int]]) -> Int32Array:
    """Return the targets as int32[N, W], padded by -1."""
    widths = np.fromiter(map(len, targets), dtype=np.int64, count=len(targets))
    width = int(widths.max(initial=0))
    flat = np.fromiter(chain.from_iterable(targets), dtype=np.int32, count=int(widths.sum()))
    matrix = np.full((len(targets), width), PAD, dtype=np.int32)
    matrix[np.arange(width) < widths[:, None]] = flat
    return matrix
