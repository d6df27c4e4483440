"""Make every file of a plan's folder, for `plan` to write and for its check to compare with.

What it decides: which files there are, and what each holds: the same plan, batches and summary give the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from broker.cluster import Int64Array
from placement.formats.certificates import certificate_json, digest
from placement.formats.plan_files import plan_texts
from placement.planning.check import Certificate, Tally
from placement.planning.completion import elected_besides
from placement.planning.goal import Goal
from placement.planning.input_table import input_table
from placement.planning.moves import Moves
from placement.planning.plan_tables import brokers_table, moves_table
from placement.planning.reassignment import Reassignment
from spark_analysis.report.plan_page import plan_page
from spark_analysis.tables.answers import answer_text

PLANNED: Final = "plan"
SUMMARY: Final = "summary.json"


@attrs.frozen(kw_only=True, eq=False)
class Planned:
    """Hold a plan as its folder does: what changes, for which goal, with which proof, in which batches.

    `batches` are places in `moved`, and `throttle` is in bytes a second, None for none.
    """

    moved: Reassignment
    goal: Goal
    certificate: Certificate
    tally: Tally
    batches: Sequence[Int64Array]
    throttle: int | None

    def figures(self) -> dict[str, Any]:
        """Return the numbers of the summary that follow from the plan and its input."""
        view, moves = self.moved.view, Moves.of(self.moved)
        return {
            "broker_count": len(view.brokers),
            "partition_count": view.partitions.count,
            "replica_count": view.partitions.replica_count,
            "goal": attrs.asdict(self.goal),
            "changed_partition_count": self.moved.count,
            **attrs.asdict(self.tally),
            "is_least": self.tally.is_least,
            "elected_besides_count": elected_besides(self.moved, self.goal).count,
            "moved_bytes": int((moves.sizes * moves.counts).sum()) if moves.sizes_known else None,
            "batch_count": len(self.batches),
            "throttle": self.throttle,
        }

    def texts(self, summary: Mapping[str, Any]) -> dict[str, str]:
        """Return the texts of the folder by name; `summary` is that of the plan."""
        texts = plan_texts(self.moved, self.goal, self.moved.parts(self.batches), throttle=self.throttle)
        brokers = brokers_table(self.moved, self.goal, self.certificate, self.batches).to_pylist()
        proof = certificate_json(
            self.moved.view,
            self.goal,
            self.certificate,
            attrs.asdict(self.tally),
            input_sha256=digest(self.moved.view),
            summary=summary,
        )
        page = plan_page(summary, brokers, texts["commands.txt"])
        return texts | {"certificate.json": proof, "plan.html": page, SUMMARY: answer_text(summary)}

    def tables(self) -> dict[str, pa.Table]:
        """Return the tables of the folder by name, without their ending."""
        return {
            "input": input_table(self.moved.view),
            "moves": moves_table(self.moved, self.goal, self.batches),
            "brokers": brokers_table(self.moved, self.goal, self.certificate, self.batches),
        }


def parquet_bytes(table: pa.Table) -> bytes:
    """Return a table as the bytes of a Parquet file, as answers are written."""
    held = io.BytesIO()
    pq.write_table(table, held, compression="zstd")
    return held.getvalue()
