"""Two nights are appended to a Delta table and read, where Delta is released for the Spark that is installed.

Delta's jars come from Maven Central, like Kafka's in tests/kafka. For Spark 4.3 there was none in November 2026: then
the test is skipped and says so, and runs by itself once there is one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.kafka.jvm import KafkaUnavailableError, class_path_of

SPARK = ".".join(pyspark.__version__.split(".")[:2])
ARTIFACT = f"delta-spark_{SPARK}_2.13"
POM = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>tests</groupId>
  <artifactId>delta</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>io.delta</groupId><artifactId>{ARTIFACT}</artifactId><version>[4.0,)</version></dependency>
  </dependencies>
</project>
"""
PROGRAM = """
import datetime, sys
from pyspark.sql import SparkSession
from spark_analysis import sinks
from spark_analysis.questions import balance
from tests.spark_analysis.frames.test_balance import ONE, ONE_SCHEMA

folder, jars = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars", jars)
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.sources.default", "delta")
    .config("spark.sql.warehouse.dir", folder)
    .getOrCreate()
)
rows = balance.clusters(spark.createDataFrame(ONE, ONE_SCHEMA))
for day in (21, 22):
    night = sinks.Run(f"night-{day}", datetime.datetime(2026, 11, day, tzinfo=datetime.timezone.utc))
    sinks.append(rows, "default.clusters", run=night)
table = spark.table("default.clusters")
assert spark.sql("describe detail default.clusters").first()["format"] == "delta"
assert table.count() == 2 * rows.count()
assert sorted(row["run_id"] for row in table.select("run_id").distinct().collect()) == ["night-21", "night-22"]
try:
    sinks.append(rows.drop("uneven"), "default.clusters", run=sinks.Run("night-23", night.observed_at))
except Exception as refused:
    assert "uneven" in str(refused), refused
else:
    raise AssertionError("a table with other columns took the rows")
"""


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("delta")
    (folder / "pom.xml").write_text(POM)
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("mvn is not on the PATH")
    try:
        found = class_path_of(maven, folder / "pom.xml", folder / "class-path.txt")
    except KafkaUnavailableError as missing:
        pytest.skip(f"io.delta:{ARTIFACT} cannot be had, so Delta is not tested with Spark {SPARK}: {missing}"[:300])
    return found.replace(":", ",")


@pytest.mark.kafka  # It needs Maven Central.
@pytest.mark.spark
def test_two_nights_are_appended_to_a_table_of_delta(jars: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "lake"), jars]
    workers = {"PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **workers})
    assert done.returncode == 0, done.stderr[-3000:]
