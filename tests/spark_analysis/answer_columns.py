"""Print the columns of every DataFrame function's answer: `python -m tests.spark_analysis.answer_columns`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from spark_analysis.answers.availability import AVAILABILITY
from spark_analysis.answers.durability import COPYSETS, DURABILITY
from spark_analysis.frames.answering import answer_table
from spark_analysis.frames.per_group import answer_columns
from spark_analysis.questions import balance, movement, outages, storage, violations
from spark_analysis.questions.movement import MOVED
from spark_analysis.questions.outages import HIT
from spark_analysis.tables import schemas
from spark_analysis.tables.columns import Column, Table

_TYPES: Final = {"ints": r"array\<int>", "longs": r"array\<long>", "strings": r"array\<string>"}
OF_CLUSTERS: Final[dict[str, Table]] = {
    "balance.measures": balance.MEASURES,
    "balance.clusters": balance.CLUSTERS,
    "violations.violations": violations.VIOLATIONS,
    "violations.partitions": violations.PARTITIONS,
    "outages.outages": outages.OUTAGES,
    "outages.partitions": HIT,
    "movement.plans": movement.PLANS,
    "movement.moves": MOVED,
    "movement.costs": movement.COSTS,
    "durability.copysets": COPYSETS,
    "durability.durability": DURABILITY,
    "availability.availability": AVAILABILITY,
    "storage.held": storage.HELD,
}
OF_GROUPS: Final[dict[str, Table]] = {
    "groups.assignments": schemas.ASSIGNMENTS,
    "groups.balance": schemas.BALANCE,
    "groups.moves": schemas.MOVES,
    "traffic.groups": schemas.GROUP_TRAFFIC,
    "traffic.clusters": schemas.TRAFFIC_CHANGES,
}
OF_LOGS: Final[dict[str, Table]] = {
    "groups.lag": schemas.LAG,
    "storage.codecs": storage.CODECS,
    "storage.keys": storage.KEYS,
    "storage.compaction": storage.COMPACTION,
}
KEYS: Final = ("cluster",)
_INTRODUCTION: Final = """# Columns of the answers

Every answer begins with the keys of its rows: `cluster`, and whichever of `run_id`, `observed_at`, `cluster_id`,
`placer`, `offset`, `time_ms` and `source` the DataFrame has. A column may be null where the input does not say, and
in a row with a `fault`. The same texts are metadata of the columns: `frame.schema["moves"].metadata["comment"]`.
"""


def answers() -> dict[str, Table]:
    """The columns of each function's answer, beside the keys."""
    of_clusters = {name: answer_table(table, KEYS) for name, table in OF_CLUSTERS.items()}
    of_groups = {name: answer_columns(table, KEYS) for name, table in OF_GROUPS.items()}
    return of_clusters | of_groups | OF_LOGS


def document() -> str:
    """Return the document: a section for each function, a line for each column."""
    return "\n".join([_INTRODUCTION, *(line for name, table in answers().items() for line in _section(name, table))])


def _section(name: str, table: Table) -> Iterator[str]:
    yield f"## {name}\n\n{table.grain[0].upper()}{table.grain[1:]}.\n"
    yield "| column | type | unit | meaning |\n|---|---|---|---|"
    yield from (_line(column) for column in table.columns if column.name not in KEYS)
    yield ""


def _line(column: Column) -> str:
    comment = column.comment.replace("|", r"\|").replace("<", r"\<")
    return f"| `{column.name}` | {_TYPES.get(column.type, column.type)} | {column.unit} | {comment} |"


if __name__ == "__main__":
    print(document())
