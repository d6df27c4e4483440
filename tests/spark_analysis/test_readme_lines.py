"""The README's lines about DataFrames of members, brokers and segments are run as they stand."""

from __future__ import annotations

import ast

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_analysis.data_sources.registry import register
from tests.architecture.house import ROOT
from tests.architecture.readme import blocks
from tests.log.samples import DIRECTORY, write_sample

TEXT = (ROOT / "spark_analysis/README.md").read_text(encoding="utf-8")
NOT_RUN = "tests/spark_analysis/test_readme_lines.py"


def statements() -> list[str]:
    (block,) = (one for one in blocks(TEXT) if NOT_RUN in one.not_run)
    return [ast.unparse(one) for one in ast.parse(block.text).body]


@pytest.fixture(scope="module")
def frames(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    logs = tmp_path_factory.mktemp("logs")
    write_sample("none", logs)
    assert (logs / DIRECTORY).is_dir()
    register(spark)
    of_log, of_cluster = spark.read.format("kafka_log"), spark.read.format("kafka_cluster")
    (dump,) = sorted((ROOT / "tests/real_data/multiregion").glob("1-*.txt"))
    schema = "cluster string, group string, member_id string, topics array<string>, rack string, held array<string>"
    return {
        "partitions": of_cluster.load(str(dump)),
        "brokers": of_cluster.option("table", "brokers").load(str(dump)),
        **{name: of_log.option("table", name).load(str(logs)) for name in ("batches", "records", "segments")},
        "members": spark.createDataFrame([(dump.stem, "g", "m", ["multi-region-async"], None, [])], schema),
    }


@pytest.mark.parametrize("line", statements()[1:])
def test_a_line_of_the_readme_answers(
    frames: dict[str, DataFrame], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(f"{statements()[0]}\n{line}", dict(frames))
    assert capsys.readouterr().out.startswith("+-")  # A table, as `show` prints it.
