"""Write the page: sections in the order of a reader's questions, in one file that loads nothing.

Goals, most important first: nothing is loaded from outside, and nothing in the tables can run (a content security
policy allows exactly this file's one style and one script, by hash, and pictures written into the page); the page is
readable without the script; equal reports give equal bytes.

Left out: the date. The file system knows it, and the same input gives the same file.

Source: W3C Content Security Policy Level 3; WCAG 2.2 (skip link, headings, contrast).
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from broker.drawing.element import Markup, asset, content_hash, page, tag
from broker.drawing.palette import filled
from spark_analysis.report.answers import answer_sections
from spark_analysis.report.changes import changes_section
from spark_analysis.report.detail import clusters_section
from spark_analysis.report.distance import distance_section
from spark_analysis.report.glossary import glossary_section
from spark_analysis.report.model import Report
from spark_analysis.report.now import now_section
from spark_analysis.report.overview import what_section
from spark_analysis.report.ranking import ranking_section

_CONTENTS: Final = (
    ("what", "What is this"),
    ("now", "Wrong now"),
    ("changes", "What changed"),
    ("distance", "How far from the best"),
    ("ranking", "Which first"),
    ("clusters", "One cluster"),
    ("definitions", "Definitions"),
)


def report_html(report: Report) -> str:
    """Return the whole page as text."""
    style, script = filled(_asset("report.css")), _asset("report.js")
    changes = changes_section(report)
    contents = [(name, title) for name, title in _CONTENTS if name != "changes" or changes is not None]
    contents[-2:-2] = [(one.name, one.name.capitalize()) for one in report.answers]
    return page(
        tag(
            "html",
            _head(report, style, script),
            tag(
                "body",
                tag("a", "Skip to the content", href="#main", class_="skip"),
                tag("header", tag("h1", report.run.title), _navigation(contents)),
                tag(
                    "main",
                    what_section(report),
                    now_section(report),
                    changes,
                    distance_section(report),
                    ranking_section(report),
                    *answer_sections(report.answers),
                    clusters_section(report),
                    glossary_section(report.run.tolerance),
                    id="main",
                ),
                asset("script", script),
            ),
            lang="en",
        )
    )


def _asset(name: str) -> str:
    return (files("spark_analysis.report") / "assets" / name).read_text(encoding="utf-8")


def _head(report: Report, style: str, script: str) -> Markup:
    policy = (
        f"default-src 'none'; style-src {content_hash(style)}; script-src {content_hash(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("meta", name_="referrer", content="no-referrer"),
        tag("title", f"{report.run.title} · brokerside"),
        tag("link", rel="icon", href="data:,"),
        asset("style", style),
    )


def _navigation(contents: list[tuple[str, str]]) -> Markup:
    links = [tag("li", tag("a", title, href=f"#{name}")) for name, title in contents]
    return tag("nav", tag("ol", *links), aria_label="Sections")
