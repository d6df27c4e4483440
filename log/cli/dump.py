"""Run `brokerside log dump`, which prints the contents of files or writes them as Parquet tables.

Source: org.apache.kafka.tools.DumpLogSegments, 4.3.1; `--json`, `--out` and the range of offsets are ours.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

import attrs
import click

from broker.cli import EXIT_REFUSED, takes
from broker.cli_options import idle_beside, idle_without
from broker.errors import CorruptDataError, InputError, UsageError
from broker.ids import INT32_MAX, INT64_MAX
from broker.workers import Advance, in_order, is_worker
from log.cli.output import (
    JOBS,
    JSON,
    KEEP_GOING,
    PATHS,
    QUIET,
    check_out,
    file_cost,
    print_error,
    print_lines,
    progress,
    write_lines,
)
from log.segments.file_names import LOG
from log.tools.dump_options import DECODER_CLASSES, DECODERS, MESSAGE_SIZE_MAX, DumpOptions
from log.tools.dump_rows import file_rows
from log.tools.dump_text import check_dumpable, file_lines
from log.tools.dump_topics import TOPIC_DECODERS
from log.tools.findings import Problems, of_error, of_refusal
from log.tools.index_entries import UntrimmedIndexError
from log.tools.sources import SourceFile, SourceFolder, expand_all, segment_folders, segments_size_bytes

TEXT_FACTOR: Final = 20
"""How much longer it takes to print a file than to read it."""
TEXT_BLOCK: Final = 1 << 20
JSON_COST: Final = 4
"""How many records as text cost as much as one as JSON."""
TableWriter: TypeAlias = Callable[[Sequence[SourceFolder], Path, Problems, Advance], Iterable[str]]
"""Writes the batches and records of folders as tables into a directory, notes damage, gives a line for each table."""


@attrs.frozen(kw_only=True)
class DumpCommand(DumpOptions):
    """Hold the options of `brokerside log dump`: the files to read, their decoding, and the output."""

    paths: tuple[Path, ...]
    as_json: bool
    out: Path | None
    jobs: int | None
    quiet: bool
    offsets: bool
    transactions: bool
    share: bool
    remote: bool
    show_secrets: bool
    key_class: str | None
    value_class: str | None


_TEXT_ONLY: Final = (
    *("--deep-iteration", "--print-data-log", "--skip-record-metadata", "--index-sanity-check", "--verify-index-only"),
    *("--key-decoder", "--value-decoder", "--key-decoder-class", "--value-decoder-class", "--max-message-size"),
    "--json",
)
"""Options that say how text is printed; tables have every field."""


@attrs.frozen
class _Dumped:
    """Hold what came of printing a file: its problems, what ends the command, and the text that is still to print."""

    problems: Problems
    refusal: InputError | None
    text: Path | None = None


_CLASS = click.Choice(sorted(DECODER_CLASSES))
_DECODER = click.Choice(sorted(DECODERS))


@click.command("dump")
@PATHS
@click.option("--deep-iteration", "deep", is_flag=True, help="Print each record, not only each batch.")
@click.option("--print-data-log", "print_data", is_flag=True, help="Print keys and values; implies --deep-iteration.")
@click.option("--skip-record-metadata", is_flag=True, help="Print only keys and values of records, no metadata.")
@click.option("--index-sanity-check", is_flag=True, help="Check indexes only as a starting broker does.")
@click.option("--verify-index-only", is_flag=True, help="Compare indexes with the log, and print only mismatches.")
@click.option("--key-decoder", type=_DECODER, default="utf-8", help="Decoder of record keys (default utf-8).")
@click.option("--value-decoder", type=_DECODER, default="utf-8", help="Decoder of record values (default utf-8).")
@click.option(
    "--key-decoder-class",
    "key_class",
    type=_CLASS,
    metavar="CLASS",
    help="Decoder of keys, org.apache.kafka.tools.api.LongDecoder, IntegerDecoder or StringDecoder; prints data.",
)
@click.option(
    "--value-decoder-class",
    "value_class",
    type=_CLASS,
    metavar="CLASS",
    help="Decoder of values, org.apache.kafka.tools.api.LongDecoder, IntegerDecoder or StringDecoder; prints data.",
)
@click.option("--cluster-metadata-decoder", "metadata", is_flag=True, help="Decode values as cluster metadata records.")
@click.option(
    "--show-secrets",
    is_flag=True,
    help="Print SCRAM credentials and secret settings of cluster metadata, as kafka-dump-log does.",
)
@click.option("--offsets-decoder", "offsets", is_flag=True, help="Decode records of __consumer_offsets.")
@click.option("--transaction-log-decoder", "transactions", is_flag=True, help="Decode records of __transaction_state.")
@click.option("--share-group-state-decoder", "share", is_flag=True, help="Decode records of __share_group_state.")
@click.option("--remote-log-metadata-decoder", "remote", is_flag=True, help="Decode records of __remote_log_metadata.")
@click.option("--start-offset", type=click.IntRange(0, INT64_MAX), default=0, help="First offset to print (default 0).")
@click.option(
    "--end-offset", type=click.IntRange(0, INT64_MAX), help="Offset to stop before (default: the end of the log)."
)
@click.option(
    "--max-bytes",
    "bytes_max",
    type=click.IntRange(1, INT32_MAX),
    default=INT32_MAX,
    help=f"Bytes to read of each segment (default {INT32_MAX}).",
)
@click.option(
    "--max-message-size",
    "message_size_max",
    type=click.IntRange(1, INT32_MAX),
    default=MESSAGE_SIZE_MAX,
    help=f"Bytes of the log to read for each index entry (default {MESSAGE_SIZE_MAX}).",
)
@KEEP_GOING
@JOBS
@JSON
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write Parquet tables into this directory instead of printing.",
)
@QUIET
@idle_beside("--out", "--jobs", *_TEXT_ONLY)
@idle_without("--cluster-metadata-decoder", "--show-secrets")
@takes(DumpCommand)
def dump_command(options: DumpCommand) -> int:
    """Print the contents of files, as kafka-dump-log does.

    \b
    brokerside log dump orders-0/00000000000000000000.log --deep-iteration
    brokerside log dump orders-0 --print-data-log --start-offset 100
    brokerside log dump __cluster_metadata-0 --cluster-metadata-decoder
    brokerside log dump orders-0 --json
    brokerside log dump /var/lib/kafka --out tables
    """
    if options.end_offset is not None and options.end_offset < options.start_offset:
        raise UsageError(f"--end-offset {options.end_offset} is below --start-offset {options.start_offset}")
    # Decoded records are data too, and data is printed record by record.
    decoder = _topic_decoder(options)
    has_class = options.key_class is not None or options.value_class is not None
    print_data = options.print_data or options.metadata or decoder is not None or has_class
    deep = options.deep or print_data
    options = attrs.evolve(
        options,
        print_data=print_data,
        deep=deep,
        hides_secrets=not options.show_secrets,
        record_cost=JSON_COST if options.as_json else 1,
        topic_decoder=decoder,
        key_decoder=DECODER_CLASSES[options.key_class] if options.key_class else options.key_decoder,
        value_decoder=DECODER_CLASSES[options.value_class] if options.value_class else options.value_decoder,
    )
    folders = expand_all(options.paths)
    problems = Problems()
    if options.out is None:
        _print_files([file for folder in folders for file in folder.files], options, problems)
    else:
        _write_tables(folders, options.out, options, problems)
    for line in (*problems.lines(), *problems.untrimmed_lines(), *problems.damage_lines()):
        print_error(line)
    return EXIT_REFUSED if problems.has_damage else 0


def _topic_decoder(options: DumpCommand) -> str | None:
    """Return the decoder for internal topics that the options name; raise UsageError for several decoders."""
    asked = (options.offsets, options.transactions, options.remote, options.share)
    named = [name for name, is_asked in zip(TOPIC_DECODERS, asked, strict=True) if is_asked]
    if len(named) + options.metadata > 1:
        raise UsageError("a topic has records of one kind: name one decoder, not several")
    return named[0] if named else None


def _print_files(files: Sequence[SourceFile], options: DumpCommand, problems: Problems) -> None:
    """Print files one after another; what several processes have to print goes through temporary files.

    Raises InputError before anything is printed if a file cannot be dumped, unless `keep_going` passes over it.
    """
    for file in () if options.keep_going else files:
        check_dumpable(file, is_compared=not options.as_json)
    raw = not is_terminal()
    with TemporaryDirectory(prefix="brokerside-") as folder:
        work = partial(_dumped, options=options, folder=Path(folder), raw=raw)
        for dumped in in_order(work, tuple(enumerate(files)), cost=_cost, jobs=options.jobs):
            if dumped.text is not None:
                _print_text(dumped.text)
            problems.merge(dumped.problems)
            if dumped.refusal is not None:
                raise dumped.refusal


def is_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout.isatty()


def _dumped(numbered: tuple[int, SourceFile], _: Advance, *, options: DumpCommand, folder: Path, raw: bool) -> _Dumped:
    """Print a file, in a process of its own into a temporary file below `folder`.

    Into a pipe, keys and values go as kafka-dump-log prints them, `raw`; on a terminal, escaped.
    """
    number, file = numbered
    problems = Problems()
    if not is_worker():
        return _Dumped(problems, _print_file(file, options, problems, partial(write_lines, _echo, raw=raw)))
    text = folder / str(number)
    with text.open("wb") as opened:
        write = partial(write_lines, lambda block: opened.write(_encoded(block)), raw=raw)
        refusal = _print_file(file, options, problems, write)
    return _Dumped(problems, refusal, text)


def _echo(block: str) -> None:
    click.echo(_encoded(block), nl=False)


def _encoded(block: str) -> bytes:
    """Return a block as Java prints it: "?" for half of a surrogate pair."""
    return block.encode(errors="replace")


def _print_text(text: Path) -> None:
    with text.open("rb") as opened:
        while block := opened.read(TEXT_BLOCK):
            click.echo(block, nl=False)
    text.unlink()


def _cost(numbered: tuple[int, SourceFile]) -> int:
    return TEXT_FACTOR * file_cost(numbered[1])


def _print_file(
    file: SourceFile, options: DumpCommand, problems: Problems, write: Callable[[Iterable[str]], None]
) -> InputError | None:
    """Print one file up to its first damage, which goes to `problems`; with `keep_going` damage is skipped.

    Returns why the file cannot be opened, if that ends the command.
    """
    rows = file_rows(file, options, problems)
    try:
        write(map(json.dumps, rows) if options.as_json else file_lines(file, options, problems))
    except UntrimmedIndexError:
        problems.note_untrimmed(file.shown.removesuffix(f"/{file.path}"))
    except CorruptDataError as error:
        problems.damage(of_error(file.shown, error, file.view() if file.kind == LOG else None))
    except InputError as refusal:
        if not options.keep_going:
            return refusal
        problems.damage(of_refusal(refusal))
    return None


def _write_tables(folders: Sequence[SourceFolder], out: Path, options: DumpCommand, problems: Problems) -> None:
    if not options.is_whole or options.start_offset or options.metadata or options.topic_decoder:
        raise UsageError(
            "--out writes whole segments, values as bytes; --start-offset, --end-offset, --max-bytes and"
            " decoders of internal topics do not go with it"
        )
    check_out(options.paths, out)
    with_segments = segment_folders(folders)
    joined: dict[str, TableWriter] | None = click.get_current_context().find_object(dict)
    if joined is None:
        raise UsageError("--out needs pyarrow; it is part of `brokerside log dump`")
    with progress("Writing", segments_size_bytes(with_segments), quiet=options.quiet) as advance:
        print_lines(joined["write_tables"](with_segments, out, problems, advance))
