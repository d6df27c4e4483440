"""Count an input that cannot be used as one row put aside, beside others that can be used.

What it decides: an input that cannot be used is one row in, put aside, and its fault is said in one sentence. What the
user has given for its cluster alone, sizes and groups, is not read, and a note says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.errors import BrokersideError, InputError
from placement.formats.parsed import ParsedDump, Reject, shown
from spark_analysis.sources.dumps import DumpInput

FORMAT_NOT_KNOWN: Final = "unknown"


def unusable(dump: DumpInput, error: BrokersideError) -> ParsedDump:
    """Return the account of an input that its reader refused with `error`."""
    source = dump.source or dump.path
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
