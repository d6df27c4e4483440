"""Decide whether a dump is a later moment of the cluster of the dump before it, or a cluster of its own.

Dumps whose file names begin with rising numbers (1-before.txt, 2-after.txt) are taken as moments of one cluster,
unless they share no topic. Dumps that the user calls moments are moments.
"""

from __future__ import annotations

import attrs

from broker.cluster import ClusterView
from placement.formats.parsed import ParsedDump
from spark_analysis.sources.dumps import BY_NAME, DumpInput


def is_later_moment(dump: DumpInput, before: ClusterView, view: ClusterView) -> bool:
    """Return whether `view`, read of `dump`, is the cluster of `before` at a later moment."""
    if dump.series != BY_NAME:
        return dump.series is not None
    earlier, later = _topics(before), _topics(view)
    return not earlier or not later or bool(earlier & later)


def with_series_note(parsed: ParsedDump, dump: DumpInput, before: ClusterView | None) -> ParsedDump:
    """Return the dump with a note that says how it was taken, if the file names were the reason."""
    if dump.series != BY_NAME or before is None or not parsed.clusters:
        return parsed
    view = parsed.clusters[0]
    shared = len(_topics(before) & _topics(view))
    if is_later_moment(dump, before, view):
        note = (
            f"taken as the cluster of {before.name} at a later moment, as the file names are numbered and {shared} of "
            f"{len(_topics(view))} topics are in both; --separate takes them as two clusters"
        )
    else:
        note = (
            f"taken as a cluster of its own: the file names are numbered, but no topic of {before.name} is in it; "
            "--moments takes them as one cluster"
        )
    return attrs.evolve(parsed, notes=(*parsed.notes, note))


def _topics(view: ClusterView) -> frozenset[str]:
    return frozenset(topic.name for topic in view.topics if not topic.name.startswith("__"))
