"""Define the `brokerside` command, which joins the commands of all packages.

__init__    main(), the entry point
commands    the table of all commands, loaded one by one
fleet       brokerside fleet
report      brokerside report
outage      brokerside outage; outage_text is what it shows in the terminal
compare     brokerside compare
impact      brokerside impact; impact_text is what it shows in the terminal
plan        brokerside plan; plan_folder makes its files, plan_check and plan_files_check check them, plan_text shows it
recipes     brokerside recipes
roll        brokerside roll
snapshot    brokerside snapshot; live_options name a live cluster in the place of a DUMP
running     what fleet and report share: their options, the engine, the report's end
cluster_inputs  what the what-if commands share: one cluster in, tables, JSON and files out
interrupts  what Ctrl-C does before, during and after a command
"""

from __future__ import annotations

import sys

from spark_analysis.cli.interrupts import end_at_once

__all__ = ("main",)


def main() -> None:
    """Run the command line and leave with its exit status."""
    end_at_once()
    # Not at the top: loading the rest takes a tenth of a second, in which an interrupt is to end in one line too.
    from broker.cli import run
    from spark_analysis.cli.commands import PROGRAM, brokerside, complete

    complete()
    status = run(brokerside, PROGRAM)
    end_at_once()
    sys.exit(status)
