"""Add up the verdicts of many runs, and say first which of them lost records, and what allowed it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from broker.wording import counted
from replication.simulation.plan_file import fault_fields
from replication.simulation.report import verdict_line
from replication.simulation.run import Outcome


class Tally:
    """Count runs, and those that are broken or lost records acknowledged with acks=all."""

    def __init__(self) -> None:
        self.run_count = self.broken_count = self.lossy_count = self.event_count = 0
        self.lossy_by_cause: Counter[str] = Counter()
        """The runs that lost records to each kind of cause; a run with two counts for both."""
        self.records: Counter[str] = Counter()
        """The acknowledged and the lost records, by acks."""
        self.noted: list[dict[str, Any]] = []
        """The runs that are broken or lost records."""

    def add(self, outcome: Outcome) -> None:
        """Count a run."""
        report = outcome.durability
        self.run_count += 1
        self.event_count += outcome.event_count
        self.broken_count += outcome.is_broken
        self.lossy_count += bool(report.lost_by_all)
        self.lossy_by_cause.update({record.kind for record in report.lost_by_all})
        self.records.update(
            {
                "acked_by_all": report.acked_count,
                "lost_by_all": len(report.lost_by_all),
                "acked_by_one": report.acked_by_one_count,
                "lost_by_one": len(report.lost_by_one),
            }
        )
        if not outcome.is_clean:
            self.noted.append(outcome_fields(outcome))

    def lines(self) -> list[str]:
        """Return the verdict in one line, and the counts in another."""
        lossy, records = f"{self.lossy_count} of {counted(self.run_count, 'run')} lost acks=all records", self.records
        if self.lossy_count:
            causes = ", ".join(f"{kind} {count}" for kind, count in self.lossy_by_cause.most_common())
            lossy += f" as their settings allow ({causes})" if not self.broken_count else f" ({causes})"
        return [
            f"{self.broken_count} broken; {lossy}",
            f"acknowledged by all {records['acked_by_all']:,} (lost {records['lost_by_all']:,}), by one "
            f"{records['acked_by_one']:,} (lost {records['lost_by_one']:,}), {counted(self.event_count, 'event')}",
        ]

    def fields(self) -> dict[str, Any]:
        """Return the counts, and the runs that are broken or lost records, as values of JSON."""
        return {
            "run_count": self.run_count,
            "broken_count": self.broken_count,
            "lossy_count": self.lossy_count,
            "lossy_count_by_cause": dict(sorted(self.lossy_by_cause.items())),
            **self.records,
            "event_count": self.event_count,
            "runs": self.noted,
        }


def outcome_fields(outcome: Outcome) -> dict[str, Any]:
    """Return a run's verdict as values of JSON."""
    report = outcome.durability
    return {
        "seed": outcome.options.seed,
        "verdict": verdict_line(outcome),
        "findings": [
            {"code": each.code, "at_ms": each.at_ms, "partition": each.partition, "what": each.what}
            for each in outcome.findings
        ],
        "acked_by_all": report.acked_count,
        "lost_by_all": len(report.lost_by_all),
        "lost_by_all_by_cause": dict(sorted(Counter(record.kind for record in report.lost_by_all).items())),
        "event_count": outcome.event_count,
        "digest": outcome.digest,
        "plan": [fault_fields(fault) for fault in outcome.plan],
    }
