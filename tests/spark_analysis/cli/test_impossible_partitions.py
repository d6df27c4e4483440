"""A partition that cannot be, in a dump or in a metadata log: one sentence or one fault row, whatever is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from broker.cli import EXIT_REFUSED, EXIT_USAGE, run
from log.metadata.schemas import RecordType
from spark_analysis.cli.commands import brokerside
from spark_analysis.data_sources.metadata_rows import MetadataRequest, metadata_batches
from spark_analysis.data_sources.options import PERMISSIVE
from spark_analysis.sources.inputs import dump_inputs
from spark_analysis.tables.schemas import CLUSTER_INPUTS, CLUSTER_PARTITIONS, CLUSTER_REJECTS
from tests.log.metadata.made import ORDERS, batches, broker, made, partition, topic

IMPOSSIBLE: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "a stranger in the ISR": ({"isr": (1, 4)}, "isr names broker 4, which is no replica (1,2,3)"),
    "an ISR alone": ({"replicas": (), "isr": (1,)}, "the list of replicas is empty"),
    "a replica twice": ({"replicas": (1, 1, 2), "isr": (1,)}, "replicas names broker 1 twice"),
    "in sync twice": ({"isr": (1, 1)}, "isr names broker 1 twice"),
    "a stranger as leader": ({"leader": 9}, "Leader 9 is no replica (1,2,3)"),
    "no id": ({"replicas": (-5, 1)}, "a broker id in replicas is -5; allowed are whole numbers from 0 to 2147483647"),
}
COMMANDS: Final = {
    "report DUMP --out OUT": 0,
    "plan DUMP --goal balance --out OUT": EXIT_USAGE,
    "plan DUMP --goal drain --remove 1 --out OUT": EXIT_USAGE,
    "roll DUMP": EXIT_USAGE,
    "outage DUMP": EXIT_USAGE,
    "outage DUMP --lose 2": EXIT_USAGE,
    "impact DUMP PLAN": EXIT_USAGE,
    "compare DUMP DUMP": EXIT_USAGE,
    "log history DUMP": 0,
}
PLAN: Final = '{"version":1,"partitions":[{"topic":"orders","partition":1,"replicas":[3,2,1]}]}'


def metadata_log(root: Path, wrong: dict[str, Any]) -> Path:
    """Three brokers and three partitions, the second of them wrong."""
    fields = {"partitionId": 1, "topicId": ORDERS, "replicas": (1, 2, 3), "isr": (1, 2), "leader": 1}
    second = made(RecordType.PARTITION_RECORD, **fields | {"leaderEpoch": 0, "partitionEpoch": 0} | wrong)
    directory = root / "__cluster_metadata-0"
    directory.mkdir()
    data = batches([broker(1), broker(2), broker(3)], [topic(), partition(1, 2, 3), second, partition(2, 3, number=2)])
    (directory / f"{0:020d}.log").write_bytes(data)
    return directory


def described(root: Path) -> Path:
    """The same cluster as kafka-topics prints it."""
    rows = ["Replicas: 1,2,3\tIsr: 1,2,3", "Replicas: 1,2,3\tIsr: 1,4", "Replicas: 1,2,3\tIsr: 1,2"]
    lines = [f"\tTopic: orders\tPartition: {number}\tLeader: 1\t{row}" for number, row in enumerate(rows)]
    head = "Topic: orders\tPartitionCount: 3\tReplicationFactor: 3\tConfigs: "
    path = root / "dump.txt"
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", [*IMPOSSIBLE, "a dump"])
def test_a_partition_that_cannot_be_costs_a_sentence(
    case: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong, fault = IMPOSSIBLE.get(case, ({}, "Isr names broker 4, which is no replica (1,2,3)"))
    dump = described(tmp_path) if case == "a dump" else metadata_log(tmp_path, wrong)
    (tmp_path / "plan.json").write_text(PLAN)
    named = {"DUMP": str(dump), "OUT": str(tmp_path / "out"), "PLAN": str(tmp_path / "plan.json")}
    status = run(brokerside, "brokerside", [named.get(word, word) for word in command.split()])
    out, err = capsys.readouterr()
    if case == "a dump" and command.startswith("log"):
        assert status in (EXIT_REFUSED, EXIT_USAGE)
        return
    assert status == COMMANDS[command], err
    assert "this is a bug" not in err
    if not command.startswith("log"):
        assert fault in out + err
        assert "are uncertain" not in out + err


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_the_source_of_spark_gives_such_a_partition_one_reject_and_the_others_their_rows(
    case: str, tmp_path: Path
) -> None:
    wrong, fault = IMPOSSIBLE[case]
    logs = dump_inputs((str(metadata_log(tmp_path, wrong)),), None, None)

    def rows(table: Any) -> list[dict[str, Any]]:
        request = MetadataRequest(table, table.column_names, PERMISSIVE)
        return [row for batch in metadata_batches(request, logs) for row in batch.to_pylist()]

    assert [row["partition"] for row in rows(CLUSTER_PARTITIONS) if row["topic"] == "orders"] == [0, 2]
    assert [row["reason"] for row in rows(CLUSTER_REJECTS)] == [f"orders-1: {fault}"]
    (account,) = rows(CLUSTER_INPUTS)
    assert account["rows_in"] == account["rows_analysed"] + account["rows_rejected"]
    assert account["rows_rejected"] == 1
