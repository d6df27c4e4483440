"""Define the style of an HTML page around a picture, which opens offline and can be printed."""

from __future__ import annotations

from typing import Final

STYLE: Final = (
    ":root{color-scheme:light dark}body{margin:0 auto;padding:2rem 1.5rem 4rem;max-width:78rem;background:var(--page);"
    "color:var(--ink);font:15px/1.5 system-ui,sans-serif}h1{margin:0;font-size:1.6rem}h2{margin:2.2rem 0 .5rem;"
    "font-size:1.15rem}p{max-width:50rem}.alert{color:var(--accent);font-weight:600}.quiet{color:var(--quiet)}"
    "figure{margin:1.5rem 0;overflow-x:auto}svg.run{display:block;width:100%;min-width:56rem}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.2rem 1.2rem .2rem 0;"
    "text-align:right;vertical-align:top}th{color:var(--quiet);font-weight:500;border-bottom:1px solid var(--rule)}"
    "td.t,th.t{text-align:left}code{font:.9em ui-monospace,monospace}"
    "@media print{body{max-width:none;padding:0}figure{overflow:visible}svg.run{min-width:0}}"
)
"""The style of the page around an SVG document of class `run`, which brings the colours along."""
