"""Say what was read, in words and totals."""

from __future__ import annotations

from spark_analysis.report.figures import UNKNOWN, count, plural, quantity
from spark_analysis.report.model import Report
from spark_analysis.report.rows import InputCount
from spark_analysis.report.states import is_at_best, nearly_even

__all__ = ("files_lines", "input_notes", "no_findings", "totals", "what_in_words")


def what_in_words(report: Report) -> str:
    """Return one sentence that names the inputs."""
    clusters = plural(report.cluster_count, "cluster")
    if report.run.kind == "fleet":
        placers = report.placers
        by = f"placed by {placers[0]}" if len(placers) == 1 else f"each placed by {' and by '.join(placers)}"
        return f"A simulated fleet of {clusters}, {by}."
    inputs = plural(report.inputs.count, "input")
    if report.unusable.count:
        inputs += f", of which {count(report.unusable.count)} cannot be used"
    if not report.moments:
        return f"Dumps of {clusters}, from {inputs}."
    some = "" if len(report.current_rows) == 1 else "some "
    dumps = plural(len(report.rows), "dump")
    return f"{dumps} of {clusters}, {some}taken one after another, from {inputs}. The figures are of the last."


def no_findings(report: Report) -> str:
    """Return the sentence of a report in which no cluster needs attention."""
    if any(row.facts.replica_count is None for row in report.current_rows):
        return "Nothing to look at in what the dumps show."
    if not report.rest.count and not any(row.facts.partition_count for row in report.current_rows):
        return "There is no partition to look at."
    if later := report.rest.uneven_count(report.run.tolerance):
        return f"{plural(later, 'cluster')} after the first {count(len(report.rows))} by rank: see tables/measures."
    even = all(is_at_best(row.over_brokers) for row in report.current_rows) and not report.rest.uneven_count(0.0)
    return (
        "Every cluster is as even as it can be." if even else f"Every cluster is {nearly_even(report.run.tolerance)}."
    )


def files_lines(report: Report) -> list[str]:
    """Return how many files of folders were read, skipped and of no use; nothing where no folder was given."""
    skipped = report.run.skipped
    if skipped is None:
        return []
    rejected = f"{count(report.unusable.count)} rejected"
    line = f"Files: {count(report.inputs.count - report.unusable.count)} read"
    if skipped:
        return [f"{line}, {count(len(skipped))} skipped (hidden, or logs of brokers, such as {skipped[0]}), {rejected}"]
    return [f"{line}, 0 skipped, {rejected}"]


def total_of(report: Report, field: str) -> int | None:
    """Return the sum of a column of the table of clusters over the known values of the present; None without any."""
    values = [value for row in report.current_rows if (value := getattr(row.facts, field)) is not None]
    rest = report.rest.total(field)
    return sum(values) + (rest or 0) if values or rest is not None else None


def totals(report: Report) -> list[tuple[str, str]]:
    """Return each total that is known, with its noun."""
    found = report.current_count
    counts = ("brokers", "topics", "partitions", "replicas")
    figures = [
        (count(found), "placements" if len(report.placers) > 1 else "clusters" if found != 1 else "cluster"),
        *((count(total_of(report, f"{noun[:-1]}_count")), noun) for noun in counts),
        (quantity(total_of(report, "size_bytes"), "bytes"), "of data"),
    ]
    return [(value, noun) for value, noun in figures if value != UNKNOWN]


def input_notes(row: InputCount) -> str:
    """Return what is to be known of an input, its fault first."""
    return "; ".join((*filter(None, (row.fault,)), *row.notes))
