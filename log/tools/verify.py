"""Check segments, indexes, snapshots and checkpoints for damage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import attrs

from broker.errors import CorruptDataError, InputError
from broker.workers import Advance
from log.metadata.reading import SNAPSHOT, MetadataFile, RejectedRecords
from log.metadata.replay import snapshot_entries
from log.partition.producer_entry import parse_snapshot
from log.segments.file_names import LOG, OFFSET_INDEX, PRODUCER_SNAPSHOT, TIME_INDEX, TXN_INDEX
from log.segments.txn_index import aborted_transactions
from log.storage.checkpoints import LEADER_EPOCH_FILE, EpochEntry, parse_epoch_checkpoint
from log.storage.metadata_files import META_PROPERTIES_FILE
from log.tools.dump_rows import small_file_rows
from log.tools.findings import Checked, Finding, of_error, of_refusal
from log.tools.sources import SMALL_FILES, SourceFile, SourceFolder
from log.tools.verify_segment import SegmentReport, verify_segment

SEGMENT_INDEXES = (OFFSET_INDEX, TIME_INDEX)


@attrs.frozen
class Part:
    """Name a part of a folder to verify by itself: the leader epochs, a segment, or (None) all other files."""

    folder: SourceFolder
    file: SourceFile | None
    epochs: Sequence[EpochEntry] = ()

    @property
    def files(self) -> Sequence[SourceFile]:
        """Return the files that are read."""
        if self.file is not None:
            return (self.file,)
        return [file for file in self.folder.files if file.kind != LOG and file.name != LEADER_EPOCH_FILE]


def folder_parts(folder: SourceFolder) -> Sequence[Part]:
    """Return the parts of a folder in the order of their reports."""
    named = folder.named(LEADER_EPOCH_FILE)
    first = () if named is None else (Part(folder, named),)
    epochs = _epochs(folder)[0]
    return *first, *(Part(folder, file, epochs) for file in folder.of_kind(LOG)), Part(folder, None)


def verify_part(part: Part, advance: Advance, *, keep_going: bool) -> Sequence[SegmentReport]:
    """Return the reports of a part, which know nothing of the segment before.

    Raises InputError, without `keep_going`, for a file that cannot be opened.
    """
    file = part.file
    if file is None:
        return tuple(_other_files(part, keep_going=keep_going))
    if file.kind != LOG:
        return _epochs(part.folder)[1]
    try:
        report = verify_segment(file, part.epochs, keep_going=keep_going, advance=advance)
    except InputError as refusal:
        if not keep_going:
            raise
        return (_report(file, [of_refusal(refusal)]),)
    is_rolled = part.folder.is_whole and file != part.folder.of_kind(LOG)[-1]
    missing = _missing_indexes(file) if is_rolled else ()
    return (attrs.evolve(report, findings=(*report.findings, *missing)),)


def in_sequence(parts: Iterable[Part], reports: Iterable[Sequence[SegmentReport]]) -> Iterator[SegmentReport]:
    """Yield the reports in order; add a finding where a segment begins before the end of the segment before it."""
    folder, last_offset = None, -1
    for part, found in zip(parts, reports, strict=False):  # Which may end early: with an error.
        if part.folder is not folder:
            folder, last_offset = part.folder, -1
        if part.file is None or part.file.kind != LOG or not found[0].is_read:
            yield from found
            continue
        (report,) = found
        if part.file.base_offset <= last_offset:
            overlap = f"begins below the last offset of the segment before, {last_offset}"
            report = attrs.evolve(report, findings=(*report.findings, Finding(part.file.shown, overlap)))
        last_offset = max(last_offset, report.last_offset)
        yield report


def _other_files(part: Part, *, keep_going: bool) -> Iterator[SegmentReport]:
    """Yield the reports of the files that are neither a segment's log nor the leader epochs."""
    for file in part.files:
        is_alone = part.folder.named(file.sibling(LOG).name) is None
        try:
            findings = list(_other_file(file, is_alone=is_alone))
        except InputError as refusal:
            if not keep_going:
                raise
            findings = [of_refusal(refusal)]
        if findings or is_alone or file.kind not in SEGMENT_INDEXES:
            yield _report(file, findings)


def _epochs(folder: SourceFolder) -> tuple[Sequence[EpochEntry], Sequence[SegmentReport]]:
    file = folder.named(LEADER_EPOCH_FILE)
    if file is None:
        return (), ()
    try:
        entries = parse_epoch_checkpoint(file.view(), source=file.shown)
    except CorruptDataError as error:
        return (), (_report(file, [of_error(file.shown, error)]),)
    findings = [
        Finding(file.shown, f"epoch {later.epoch} from {later.start_offset} is not above the one before")
        for before, later in pairwise(entries)
        if later.epoch <= before.epoch or later.start_offset <= before.start_offset
    ]
    return () if findings else entries, (_report(file, findings),)


def _missing_indexes(file: SourceFile) -> Iterator[Finding]:
    """Yield the indexes that a rolled segment lacks; the last segment gets its own when they are first asked."""
    for kind in SEGMENT_INDEXES:
        if not file.sibling(kind).exists():
            yield Finding(file.shown, f"has no {kind}, which a broker builds anew when it starts")


def _other_file(file: SourceFile, *, is_alone: bool) -> Iterator[Finding]:
    """Yield what is wrong with a file that is not a segment's log; indexes are read with their log."""
    if file.kind in (*SEGMENT_INDEXES, TXN_INDEX) and not file.sibling(LOG).exists():
        yield Finding(file.shown, "has no log beside it, and a broker removes it when it starts")
    elif file.kind in SEGMENT_INDEXES and is_alone:
        report = verify_segment(file.sibling(LOG), keep_going=True)
        yield from (finding for finding in report.findings if finding.file == file.shown)
    try:
        if file.kind == TXN_INDEX:
            yield from _txn_index(file)
        elif file.kind == PRODUCER_SNAPSHOT:
            parse_snapshot(file.view(), source=file.shown)
        elif file.kind == SNAPSHOT:
            rejected = RejectedRecords()
            for _ in snapshot_entries(MetadataFile(file.name, file.shown, file.view()), rejected):
                pass
            yield from (of_error(file.shown, error) for error in rejected.errors)
        elif file.kind in SMALL_FILES:
            rows = list(small_file_rows(file))
            if file.kind == META_PROPERTIES_FILE and rows[0]["clusterId"] is None and rows[0]["nodeId"] is None:
                yield Finding(file.shown, "names neither cluster nor node, and no broker starts on this directory")
    except CorruptDataError as error:
        yield of_error(file.shown, error)


def _txn_index(file: SourceFile) -> Iterator[Finding]:
    before = file.base_offset - 1
    for aborted in aborted_transactions(file.view(), source=file.shown):
        if aborted.last_offset <= before or aborted.first_offset > aborted.last_offset:
            yield Finding(
                file.shown, f"aborted transaction {aborted.first_offset} to {aborted.last_offset} is out of order"
            )
            return
        before = aborted.last_offset


def _report(file: SourceFile, findings: Sequence[Finding]) -> SegmentReport:
    return SegmentReport(tuple(findings), Checked(file_count=1, size_bytes=file.size_bytes), -1, is_read=False)
