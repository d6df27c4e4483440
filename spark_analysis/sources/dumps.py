"""Read one input of a report: the text or JSON that a tool printed, or a metadata log itself.

The task that reads an input opens its path, on an executor too; nothing read becomes a path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import attrs

from broker.cluster import ClusterView
from broker.errors import BrokersideError, CorruptDataError, InputError, UsageError
from broker.ids import BrokerId
from broker.liveness import Liveness
from broker.small_files import unreadable
from log.metadata import (
    END,
    FORMAT,
    MetadataFile,
    MetadataFiles,
    Moment,
    RejectedRecords,
    Replay,
    arrange,
    beyond_end,
    images_at,
    is_metadata_file,
    live_moments,
    replay_notes,
)
from log.metadata.reading import HEAD_SIZE_BYTES, looks_like_metadata
from log.tools.sources import METADATA_DIRECTORY, metadata_files
from placement.cli import parse_broker_list
from placement.formats.group_tables import GroupTables
from placement.formats.member_zones import ZONES_BYTES_MAX, MemberZones, read_member_zones
from placement.formats.parsed import ParsedDump, Reject, RowCounts, shown
from placement.formats.racks import Racks
from placement.formats.read import FORMATS as TEXT_FORMATS
from placement.formats.read import HEAD_BYTES, check_head, read_dump
from placement.formats.sizes import read_sizes
from placement.formats.snapshot_groups import read_groups_text
from placement.formats.text import escaped
from placement.outages.lost import taken_over
from spark_analysis.sources.dated_names import of_path
from spark_analysis.sources.files import (
    COMPRESSED,
    check_readable,
    chunks_of,
    codec_of,
    read_chunks,
    read_head,
    read_small_file,
)
from spark_analysis.sources.listing import name_of
from spark_analysis.sources.moments import MomentView, labelled, that_differ

FORMATS: Final = (*TEXT_FORMATS, FORMAT)
NO_MOMENTS: Final = "is no metadata log, of which alone moments can be asked"
EXPANSION: Final = 16  # Dumps shrink to about a twentieth in gzip and Zstandard.
BY_NAME: Final = "numbered"  # The series of dumps whose file names alone say that they are moments.
FORMAT_NOT_KNOWN: Final = "unknown"
GROUPS_BYTES_MAX: Final = 256 << 20  # More than a million partitions of groups, a line each.


@attrs.frozen
class Moments:
    """Choose the moments of a metadata log: named ones or, `by_brokers`, each before the unfenced brokers changed."""

    at: tuple[Moment, ...] = (END,)
    by_brokers: bool = False


LAST: Final = Moments()


@attrs.frozen
class DumpInput:
    """Name one input to read; `name` and `format` override its own. The inputs of a `series` are read together.

    In a series `cluster` is the name of the cluster of which the input shows a `moment`, as their names say; it may
    continue one of `successor_of` under another name. `missed` is a moment at which other clusters were dumped later
    than this one. `sources/series.py` decides all of them.

    `moments` chooses the moments of a metadata log, which are one cluster at successive moments, too. `sizes` is the
    path of a file with the sizes of the replicas, at the last of several moments. `source` and `sizes_source` are what
    errors and tables call the input and the file of sizes, if not their paths. `groups` are the paths of files about
    the consumer groups of the cluster at the last moment, `groups_sources` what errors call them. `stated` is what the
    user states of brokers of the cluster at the last moment. `refused` is why the input is not to be read.
    """

    path: str
    name: str | None = None
    format: str | None = None
    series: str | None = None
    cluster: str | None = None
    moment: str | None = None
    successor_of: tuple[str, ...] = ()
    missed: str | None = None
    moments: Moments = LAST
    sizes: str | None = None
    source: str | None = None
    sizes_source: str | None = None
    groups: tuple[str, ...] = ()
    groups_sources: tuple[str, ...] = ()
    stated: tuple[tuple[BrokerId, Liveness], ...] = ()
    refused: str | None = None

    @property
    def said(self) -> str:
        """Return what errors and tables call the input."""
        return self.source or self.path

    @property
    def size_bytes(self) -> int:
        """Return how many bytes reading it is likely to take."""
        return size_bytes(self.path)

    def check_not_refused(self) -> None:
        """Raise InputError for an input that is not to be read."""
        if self.refused is not None:
            raise InputError(self.refused, source=self.said)

    def located(self) -> DumpInput:
        """Return the input with absolute paths, for a process in another folder, under the names that it has here."""
        sizes = None if self.sizes is None else str(Path(self.sizes).absolute())
        return attrs.evolve(
            self,
            path=str(Path(self.path).absolute()),
            source=self.source or self.path,
            sizes=sizes,
            sizes_source=self.sizes_source or self.sizes,
            groups=tuple(str(Path(path).absolute()) for path in self.groups),
            groups_sources=self.groups_sources or self.groups,
        )


@attrs.frozen
class SizedDump:
    """Hold what an input describes, with sizes, and the account of the rows of the file of sizes, if there is one."""

    parsed: ParsedDump
    account: ParsedDump | None = None


def is_metadata(path: str, *, source: str | None = None) -> bool:
    """Return whether `path` is to be read as a metadata log; raise InputError if it cannot be opened."""
    check_readable(path, source=source)
    if Path(path).is_dir():
        return True
    if codec_of(path) is not None:
        return False
    return looks_like_metadata(read_head(path, HEAD_SIZE_BYTES, source=source))


def size_bytes(path: str) -> int:
    """Return how many bytes reading an input is likely to take, by the sizes of files; 0 for one out of reach."""
    place = Path(path)
    try:
        if not place.is_dir():
            return place.stat().st_size * (EXPANSION if place.suffix in COMPRESSED else 1)
        folder = place / METADATA_DIRECTORY if (place / METADATA_DIRECTORY).is_dir() else place
        return sum(each.stat().st_size for each in folder.iterdir() if is_metadata_file(each.name))
    except OSError:  # Its reader says why.
        return 0


def read_input(
    path: str,
    *,
    format: str | None = None,  # noqa: A002 - the field's word, and the command line's.
    name: str | None = None,
    moments: Moments = LAST,
    source: str | None = None,
) -> ParsedDump:
    """Return the clusters of an input and the account of its rows; `format` and `name` override the input's own.

    Raises InputError for an input that cannot be used, UsageError for moments that the log does not have.
    """
    said = source or path
    check_readable(path, source=said)
    if format == FORMAT or (format is None and is_metadata(path, source=said)):
        return read_metadata(path, name=said if name is None else name, moments=moments, source=said)
    if moments != LAST and not moments.by_brokers:
        raise InputError(NO_MOMENTS, source=said)
    return read_dump(read_chunks(path, source=said), source=said, format=format, name=name, known=FORMATS)


def read_named(dump: DumpInput) -> ParsedDump:
    """Return what an input describes, as `read_input` does, with what the user states of brokers."""
    dump.check_not_refused()
    parsed = read_input(dump.path, format=dump.format, name=dump.name, moments=dump.moments, source=dump.source)
    if not dump.stated:
        return parsed
    last = as_stated(parsed.clusters[-1], dump.stated)
    return attrs.evolve(parsed, clusters=(*parsed.clusters[:-1], last))


def as_stated(view: ClusterView, stated: Iterable[tuple[BrokerId, Liveness]]) -> ClusterView:
    """Return a view with what the user states of brokers: those that are down lead nothing, and others took over."""
    return taken_over(view.with_stated(dict(stated)))


def stated_of(down: str | None, alive: str | None) -> tuple[tuple[BrokerId, Liveness], ...]:
    """Return what --down and --alive state of brokers; raise UsageError for one that both name."""
    dead, live = (() if text is None else parse_broker_list(text) for text in (down, alive))
    both = sorted(set(dead) & set(live))
    if both:
        raise UsageError(f"broker {both[0]} is named by --down and by --alive")
    return (*((number, Liveness.STATED_DOWN) for number in dead), *((number, Liveness.ALIVE) for number in live))


def read_content(dump: DumpInput, content: bytes) -> ParsedDump:
    """Return what the content of a file describes, whatever holds it; raise InputError for one that cannot be used.

    A metadata log must be one file: a snapshot, or the first segment alone.
    """
    said = dump.said
    if looks_like_metadata(content[:HEAD_SIZE_BYTES]):
        files = arrange([MetadataFile(Path(dump.path).name, said, content)])
        return _replayed(files, said, name=said if dump.name is None else dump.name, moments=dump.moments, source=said)
    chunks = chunks_of(content, source=said)
    return read_dump(chunks, source=said, format=dump.format, name=dump.name, known=FORMATS)


def check_begins(dump: DumpInput) -> None:
    """Raise the InputError of `read_named` for an input whose first 64 KiB show that it is of no known format.

    Nothing is parsed but a JSON document as short as that. Of a metadata log's directory, only files are looked for.
    """
    said = dump.said
    check_readable(dump.path, source=said)
    if Path(dump.path).is_dir():
        _metadata_files(dump.path, said)
        return
    if dump.format == FORMAT or (dump.format is None and is_metadata(dump.path, source=said)):
        return
    head = read_head(dump.path, HEAD_BYTES, source=said)
    check_head(head, source=said, format=dump.format, known=FORMATS)


def is_empty(path: str) -> bool:
    """Return whether an input is a file of blanks alone, which can be read."""
    try:
        return Path(path).is_file() and not any(chunk.strip() for chunk in read_chunks(path))
    except (InputError, OSError):
        return False


def with_racks(parsed: ParsedDump, racks: Racks | None, dump: DumpInput) -> ParsedDump:
    """Return the input with the racks of a racks file for each of its clusters; None leaves it as it is.

    A cluster that is alone in its input, or in it at several moments, has the names of the input, too.
    """
    if racks is None:
        return parsed
    is_alone = len(parsed.clusters) == 1 or dump.moments != LAST
    of_dump = _names_of(dump) if is_alone else ()
    views = []
    for view in parsed.clusters:
        names = (view.name, *of_dump)
        views.append(view.with_racks(racks.for_cluster(*names), missing=racks.missing(*names)))
    return attrs.evolve(parsed, clusters=tuple(views))


def _names_of(dump: DumpInput) -> tuple[str, ...]:
    """Return what the cluster of an input may be called: as given, or as its file, each also without a date."""
    names = [name for name in (dump.cluster, dump.name, name_of(dump.said)) if name]
    dated = {name: of_path(name, has_ending=False) for name in names}
    return tuple(each for name in names for each in (name, dated[name].cluster if dated[name].time else name))


def with_sizes(parsed: ParsedDump, path: str | None, *, source: str | None = None) -> SizedDump:
    """Return the input with the sizes in the file `path`, if it is given, which are those of the last cluster.

    Raises InputError when the file cannot be used, or holds no size of this cluster; it names `source`, or the path.
    """
    if path is None or not parsed.clusters:
        return SizedDump(parsed)
    sizes = read_sizes(read_chunks(path, source=source), source=source or path)
    last = parsed.clusters[-1]
    sized = sizes.apply(last)
    account = attrs.evolve(sizes.account, notes=sizes.account.notes + sized.notes[len(last.notes) :])
    return SizedDump(attrs.evolve(parsed, clusters=(*parsed.clusters[:-1], sized)), account)


def read_metadata(path: str, *, name: str, moments: Moments, source: str) -> ParsedDump:
    """Return the clusters of a metadata log, one per moment, and the account of its records.

    Raises the errors of `read_input`, which name `source`.
    """
    return _replayed(_metadata_files(path, source), path, name=name, moments=moments, source=source)


def _replayed(files: MetadataFiles, path: str, *, name: str, moments: Moments, source: str) -> ParsedDump:
    """Return the clusters of a log's files, which name themselves by `path`."""
    try:
        at = live_moments(Replay(files, rejected=RejectedRecords())) if moments.by_brokers else moments.at
        rejected = RejectedRecords()
        replay = Replay(files, rejected=rejected)
        images = [MomentView.of(image, name, source, rejected) for image in images_at(replay, at)]
    except CorruptDataError as error:
        raise InputError(error.what, source=source) from None
    # The log's files are named by the path that was opened.
    notes = [note.replace(path, source) for note in (*replay.disagreements, *replay_notes(replay, rejected))]
    notes += beyond_end(replay, at)
    tally = RowCounts(source, FORMAT, rows_analysed=replay.entry_count, notes=notes)
    for found in rejected.errors:
        tally.reject(found.what, found.source.replace(path, source))
    return tally.dump(labelled(that_differ(images) if moments.by_brokers else images, by_moment=len(at) > 1))


def _metadata_files(path: str, source: str) -> MetadataFiles:
    """Return the files of a metadata log; an error names them below `source`, not below the path that was opened."""
    try:
        return metadata_files(Path(path))
    except InputError as error:
        raise InputError(error.what, source=error.source.replace(path, source)) from None
    except OSError as error:
        raise unreadable(source, error) from None


def unusable(dump: DumpInput, error: BrokersideError) -> ParsedDump:
    """Return the account of an input that its reader refused with `error`."""
    source = dump.said
    refused = as_input_error(error)
    idle = (dump.sizes_source or dump.sizes, *(dump.groups_sources or dump.groups))
    return ParsedDump(
        source=source,
        format=dump.format or FORMAT_NOT_KNOWN,
        clusters=(),
        rejects=(Reject(source, refused.line, refused.what, refused.value or ""),),
        rows_in=1,
        rows_analysed=0,
        rows_rejected=1,
        lines_passed_over=0,
        notes=tuple(f"{path}, given for this cluster, was not read" for path in idle if path is not None),
    )


def fault_of(error: BrokersideError) -> str:
    """Return an error as the text of a column `fault`."""
    return shown(str(error))


def as_input_error(error: BrokersideError) -> InputError:
    """Return the InputError that an error is, or one with its text."""
    return error if isinstance(error, InputError) else InputError(str(error))


def none_usable(failures: Sequence[InputError]) -> InputError:
    """Return the error for inputs of which none can be used: that of the only one, or one that names the first."""
    if len(failures) == 1:
        return failures[0]
    return InputError(f"none of the {len(failures):,} inputs can be used; the first: {failures[0]}")


def read_groups(path: str, *, source: str | None = None) -> GroupTables:
    """Return the groups in a file; raise InputError if it cannot be used. `source` is what errors call it."""
    data = read_small_file(path, size_bytes_max=GROUPS_BYTES_MAX)
    return read_groups_text(escaped(data), source=source or path)


def read_zones(path: str) -> MemberZones:
    """Return the zones in a file; raise InputError if it cannot be used."""
    return read_member_zones(read_small_file(path, size_bytes_max=ZONES_BYTES_MAX), source=path)
