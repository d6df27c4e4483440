"""Say in one line what came of a run: what is broken, and what acknowledged records are lost.

What it decides: the words. A run that lost records acknowledged with acks=all is never called clean: the line says how
many of how many, and names each election that lost some, with the setting or rule that allowed it.

Constraints: acks=1 promises the leader's log alone; what is lost of it is counted apart, and only beside the other.

Example: nothing is broken, but 12 of 340 records acknowledged by all are lost: 12 to the unclean election of broker 2
at 4200 ms (epoch 5), allowed by unclean.leader.election.enable=true.

Source: ours.
"""

from __future__ import annotations

from collections import Counter

from broker.wording import counted
from replication.simulation.run import Outcome

UNEXPLAINED = "with the ends of their logs, which too many replicas lost"


def verdict_line(outcome: Outcome) -> str:
    """Return the verdict of a run in one line."""
    lost = lost_text(outcome)
    if outcome.is_broken:
        return f"BROKEN: {outcome.findings[0]}" + (f"; and {lost}" if lost else "")
    return f"nothing is broken, but {lost}" if lost else "nothing is broken"


def lost_text(outcome: Outcome) -> str:
    """Return what was lost of the records acknowledged with acks=all, by election; "" if nothing was."""
    report = outcome.durability
    lost = report.lost_by_all
    if not lost:
        return ""
    causes = Counter(record.cause for record in lost)
    parts = [f"{count:,} {f'to the {cause}' if cause else UNEXPLAINED}" for cause, count in causes.items()]
    verb = "is" if len(lost) == 1 else "are"
    text = f"{len(lost):,} of {counted(report.acked_count, 'record')} acknowledged by all {verb} lost"
    return f"{text}: {'; '.join(parts)}"
