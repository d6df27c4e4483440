"""Show the inputs of the analysis, every row of them accounted for, and the command that repeats the run.

What it decides: rows in = analysed + rejected, and the rejected ones are listed. The command, the recipe, the seed and
the version stand here; the date does not, as equal input gives equal bytes.

Example: "A simulated fleet of 500 clusters, each placed by classic and by striped."

Left out: inputs and rejects beyond the first hundred; the tables beside the page have them.
"""

from __future__ import annotations

from broker.drawing.element import Content, Markup, tag
from spark_analysis.report.figures import UNKNOWN, count, plural, quantity
from spark_analysis.report.model import Report, ShortenedList
from spark_analysis.report.parts import Cell, Header, folded, note, section, table


def what_section(report: Report) -> Markup:
    """Return the section that names the inputs and the command that repeats the run."""
    run = report.run
    recipe = folded("The recipe", tag("pre", tag("code", run.recipe_text))) if run.recipe_text else None
    return section(
        "what",
        "What is this?",
        tag("p", what_in_words(report), class_="lead"),
        _totals(report),
        _accounts(report),
        tag(
            "dl",
            *_term("Command that makes it again", tag("code", run.command)),
            *(_term("Seed", tag("code", str(run.seed))) if run.seed is not None else ()),
            *_term("Version", f"brokerside {run.version}"),
            class_="facts",
        ),
        *(note(line) for line in run.notes),
        recipe,
        _inputs(report),
        _rejects(report),
    )


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


def total_of(report: Report, field: str) -> int | None:
    """Return the sum of a column of the table of clusters over the known values of the present; None without any."""
    values = [value for row in report.current_rows if (value := getattr(row.facts, field)) is not None]
    rest = report.rest.total(field)
    return sum(values) + (rest or 0) if values or rest is not None else None


def _totals(report: Report) -> Markup:
    found = report.current_count
    figures = [
        ("placements" if len(report.placers) > 1 else "clusters" if found != 1 else "cluster", count(found)),
        ("brokers", count(total_of(report, "broker_count"))),
        ("topics", count(total_of(report, "topic_count"))),
        ("partitions", count(total_of(report, "partition_count"))),
        ("replicas", count(total_of(report, "replica_count"))),
        ("of data", quantity(total_of(report, "size_bytes"), "bytes")),
    ]
    shown = [tag("li", tag("b", value), " ", name) for name, value in figures if value != UNKNOWN]
    return tag("ul", *shown, class_="totals")


def _accounts(report: Report) -> Markup:
    rejected: Content = f"{count(report.rows_rejected)} rejected"
    if report.rows_rejected:
        rejected = tag("a", rejected, href="#rejects", class_="alert")
    return tag("p", f"{plural(report.rows_in, 'row')} in = {count(report.rows_analysed)} analysed + ", rejected)


def _term(name: str, value: Content) -> tuple[Markup, Markup]:
    return tag("dt", name), tag("dd", value)


def _inputs(report: Report) -> Markup | None:
    if not report.inputs.rows:
        return None
    headers = (
        Header("input"),
        Header("format"),
        Header("clusters", "num"),
        Header("rows in", "num"),
        Header("analysed", "num"),
        Header("rejected", "num"),
        Header("lines passed over", "num"),
        Header("notes"),
    )
    rows = [
        (
            entry.source,
            entry.format,
            count(entry.cluster_count),
            count(entry.rows_in),
            count(entry.rows_analysed),
            Cell(count(entry.rows_rejected), alert=entry.rows_rejected > 0),
            count(entry.lines_passed_over),
            Cell("; ".join((entry.fault or "", *entry.notes)).removeprefix("; "), alert=entry.fault is not None),
        )
        for entry in report.inputs.rows
    ]
    title = f"{plural(report.inputs.count, 'input')}{_shortened(report.inputs)}"
    caption = "Inputs, those that cannot be used and those with rejected rows first"
    return folded(title, table(caption, headers, rows), open_=report.inputs.count <= 8)


def _shortened(kept: ShortenedList[object]) -> str:
    return "" if kept.count == len(kept.rows) else f", the first {len(kept.rows)} shown; tables/ has the rest"


def _rejects(report: Report) -> Markup | None:
    if not report.rejects.count:
        return None
    headers = (Header("file"), Header("line", "num"), Header("why it was put aside"), Header("value found"))
    rows = [(entry.source, count(entry.line), entry.reason, tag("code", entry.value)) for entry in report.rejects.rows]
    title = f"{plural(report.rejects.count, 'rejected row')}{_shortened(report.rejects)}"
    return folded(
        title,
        table("Rows that could not be used", headers, rows),
        identifier="rejects",
        open_=report.rejects.count <= 20,
    )
