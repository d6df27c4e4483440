"""A run writes to an object store, and dumps are read from it: s3a on this machine, where Hadoop's jars can be had."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import pyspark
import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside
from tests.kafka.jvm import KafkaUnavailableError, tool, write_class_path
from tests.spark_analysis.processes import SECONDS_MAX
from tests.spark_analysis.test_jobs import MULTIREGION, tables

pytestmark = [pytest.mark.spark, pytest.mark.deep]
BUCKET: Final = "lake"
KEY: Final = "of-the-tests"
DUMPS: Final = sorted(MULTIREGION.glob("?-*.txt"))
READ: Final = """
import json, sys
from spark_analysis import parse
from spark_analysis.questions import balance
from spark_analysis.session.spark_session import spark_session

settings = dict(word.split("=", 1) for word in sys.argv[1:])
with spark_session(app_name="s3a", master="local[1]", options=settings) as spark:
    files = spark.read.format("binaryFile").option("pathGlobFilter", "*.txt").load("s3a://lake/dumps/")
    found = balance.clusters(parse.partitions(files), parse.brokers(files)).where("fault is null")
    rows = found.select("cluster", "replica_count", "leaderless_count").orderBy("cluster").collect()
print(json.dumps([list(row) for row in rows]))
"""


@attrs.frozen
class Store:
    """A bucket of this machine: the client of its server, and the words by which a command reaches it."""

    client: Any
    settings: tuple[str, ...]

    def words(self) -> list[str]:
        return [word for setting in self.settings for word in ("--conf", setting)]

    def fetch(self, prefix: str, folder: Path) -> Path:
        """Copy what is below a prefix to a folder."""
        for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{prefix}/"):
            for one in page["Contents"]:
                path = folder / one["Key"].removeprefix(f"{prefix}/")
                path.parent.mkdir(parents=True, exist_ok=True)
                self.client.download_file(BUCKET, one["Key"], str(path))
        return folder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Moto's server, and Hadoop's file system of the version that pyspark has."""
    moto = pytest.importorskip("moto.server", reason="moto's server is missing: pip install 'brokerside[object-store]'")
    boto3 = pytest.importorskip("boto3", reason="moto's client is missing: pip install 'brokerside[object-store]'")
    serving = pytest.importorskip("werkzeug.serving")
    jars = list((Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar"))
    (version,) = (found[1] for jar in jars if (found := re.fullmatch(r"hadoop-client-api-(.+)\.jar", jar.name)))
    class_path = tmp_path_factory.mktemp("s3a") / "class-path.txt"
    words = [f"-Dhadoop.version={version}", "-Dmdep.includeScope=runtime"]
    try:
        write_class_path(tool("mvn"), Path(__file__).with_name("pom.xml"), words, class_path)
    except KafkaUnavailableError as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patch:
        # Python's server and werkzeug's would each answer "100 Continue", and Amazon's client takes the second for the
        # answer to its request.
        patch.setattr(serving.WSGIRequestHandler, "handle_expect_100", lambda _: True)
        server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        at = f"http://{host}:{port}"
        client = boto3.client(
            "s3", endpoint_url=at, aws_access_key_id=KEY, aws_secret_access_key=KEY, region_name="us-east-1"
        )
        client.create_bucket(Bucket=BUCKET)
        hadoop = {"endpoint": at, "endpoint.region": "us-east-1", "access.key": KEY, "secret.key": KEY,
                  "path.style.access": "true"}  # fmt: skip
        settings = [f"spark.hadoop.fs.s3a.{name}={value}" for name, value in hadoop.items()]
        found = class_path.read_text(encoding="utf-8").strip().replace(":", ",")
        yield Store(client, (f"spark.jars={found}", *settings))
        server.stop()


def ran(command: list[str]) -> tuple[str, str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    "words",
    [["report", *map(str, DUMPS), "--separate"], ["fleet", "uneven-racks", "--clusters", "4"]],
    ids=["report", "fleet"],
)
def test_a_run_at_s3a_is_that_of_a_folder(
    store: Store, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri, plain = f"s3a://{BUCKET}/{words[0]}/new", tmp_path / "plain"
    printed = ran([sys.executable, "-m", "spark_analysis", *words, "--quiet", "--out", uri, *store.words()])
    assert f"Report: {uri}/report.html\n" in printed[0]
    assert run(brokerside, "brokerside", [*words, "--quiet", "--out", str(plain), "--engine", "local"]) == 0
    assert printed == tuple(text.replace(str(plain), uri) for text in capsys.readouterr())
    there = store.fetch(f"{words[0]}/new", tmp_path / "there")
    assert not [path for path in there.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert tables(there) == tables(plain) != {}
    assert sorted(path.name for path in there.iterdir()) == sorted(path.name for path in plain.iterdir())
    texts = ((out / "report.json").read_text(encoding="utf-8") for out in (there, plain))
    one, other = (json.loads(text.replace(uri, "OUT").replace(str(plain), "OUT")) for text in texts)
    assert "s3a.secret.key=(redacted)" in one.pop("command") != other.pop("command")
    assert one == other


def test_dumps_at_s3a_are_read(store: Store) -> None:
    for path in DUMPS:
        store.client.upload_file(str(path), BUCKET, f"dumps/{path.name}")
    store.client.put_object(Bucket=BUCKET, Key="dumps/notes.md", Body=b"no dump")
    rows = json.loads(ran([sys.executable, "-c", READ, *store.settings])[0])
    assert [name for name, _, _ in rows] == [path.stem for path in DUMPS]
    assert all(count > 0 for _, count, _ in rows)
    assert [name for name, _, leaderless in rows if leaderless] == ["3-west-region-stopped"]
