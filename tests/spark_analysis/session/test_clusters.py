"""Equal tables in one process, on a cluster whose executor and worker are killed, and on Connect.

The commands are those of the README, as they stand there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from pathlib import Path

import attrs
import pytest
from pyspark.sql import SparkSession

from spark_analysis import register
from spark_analysis.engines import LocalEngine
from spark_analysis.fleet.reading import load_recipe
from spark_analysis.jobs import analyse_dumps, analyse_fleet
from spark_analysis.sources.inputs import dump_inputs
from tests.spark_analysis.processes import parent_of, wait_until
from tests.spark_analysis.session.questions import answers
from tests.spark_analysis.session.shell import ROOT, Shell, free_port, readme_blocks, started
from tests.spark_analysis.test_jobs import MULTIREGION, QUIET, tables

pytestmark = [
    pytest.mark.spark,
    pytest.mark.deep,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark's own scripts need a Java on the path"),
]

SECTION = "On a cluster, and with Spark Connect"
CLUSTERS = 40
DUMPS = sorted(str(path.relative_to(ROOT)) for path in MULTIREGION.glob("*.txt"))
ASK = """
import json
from tests.spark_analysis.session.questions import answers

def where(batches):
    import pyarrow as pa
    import broker.errors as ours
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"file": [ours.__file__]})

dumps = sorted(str(path.resolve()) for path in Path("tests/real_data/multiregion").glob("*.txt"))
(place,) = spark.range(1).mapInArrow(where, "file string").collect()
Path("answers.json").write_text(json.dumps({"place": place.file, **answers(spark, dumps)}))
"""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The digests of both runs in this process, by the name of their folder."""
    out = tmp_path_factory.mktemp("expected")
    recipe = attrs.evolve(load_recipe("uneven-racks"), cluster_count=CLUSTERS)
    analyse_fleet(LocalEngine(), recipe, out / "fleet-out", progress=QUIET)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        inputs = dump_inputs(DUMPS, None, None, ())
        analyse_dumps(LocalEngine(), inputs, None, out / "report-out", progress=QUIET)
    return {name: tables(out / name) for name in ("fleet-out", "report-out")}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for machine code of kernels: both tests send the same archive, so that they are compiled once."""
    return tmp_path_factory.mktemp("cache")


def digests(folder: Path) -> dict[str, dict[str, str]]:
    return {name: tables(folder / name) for name in ("fleet-out", "report-out")}


def javas(shell: Shell, word: str) -> dict[int, str]:
    """The JVMs of the script whose command has the word; the shell's own command has them all."""
    return {
        pid: words for pid, words in shell.commands().items() if words.split()[0].endswith("java") and word in words
    }


def is_in_the_middle(shell: Shell) -> bool:
    """Whether both workers have an executor, and no run has ended."""
    return len(javas(shell, "CoarseGrainedExecutorBackend")) == 2 and "Report:" not in shell.printed()


def kill_one_of_each(shell: Shell) -> None:
    """Kill an executor of one worker, and the other worker, whose executor ends with it.

    Its parent process is the worker that started it; its folder would not tell, as a JVM changes it while it starts.
    """
    executor = min(javas(shell, "CoarseGrainedExecutorBackend"))
    (lost,) = javas(shell, "deploy.worker.Worker ").keys() - {parent_of(executor)}
    os.kill(executor, signal.SIGKILL)
    os.kill(lost, signal.SIGKILL)


def test_tables_are_equal_on_one_machine(tmp_path: Path, cache: Path, expected: dict[str, dict[str, str]]) -> None:
    script, *_ = readme_blocks(SECTION, {})
    with started(script, tmp_path, cache) as shell:
        assert shell.status() == 0, shell.printed()
        assert digests(tmp_path) == expected, shell.printed()


def test_tables_are_equal_on_a_cluster_of_which_an_executor_and_a_worker_are_killed(
    tmp_path: Path, cache: Path, expected: dict[str, dict[str, str]]
) -> None:
    _, script, *_ = readme_blocks(SECTION, {"7077": free_port(), "15002": free_port()})
    with started(script, tmp_path, cache) as shell:
        wait_until(lambda: shell.has_ended() or is_in_the_middle(shell))
        assert not shell.has_ended(), shell.printed()
        kill_one_of_each(shell)
        assert shell.status() == 0, shell.printed()
        assert digests(tmp_path) == expected, shell.printed()
        # Spark says either, as its driver notices the loss or the master tells it.
        assert re.search("Lost executor|Executor .* finished with state", shell.printed())


def test_tables_and_answers_are_equal_on_a_connect_server(
    tmp_path: Path, cache: Path, expected: dict[str, dict[str, str]], spark: SparkSession
) -> None:
    pytest.importorskip("grpc_status", reason="Spark Connect's client is missing: pip install 'pyspark[connect]'")
    *_, script, program = readme_blocks(SECTION, {"15002": free_port()})
    (tmp_path / "questions.py").write_text(program + ASK, encoding="utf-8")
    with started(script, tmp_path, cache) as shell:
        assert shell.status() == 0, shell.printed()
        assert digests(tmp_path) == expected, shell.printed()
        assert "3-west-region-stopped" in shell.printed()
    found = json.loads((tmp_path / "answers.json").read_text(encoding="utf-8"))
    assert "brokerside.zip/broker/errors.py" in found.pop("place")
    register(spark)
    assert found == answers(spark, [str(ROOT / path) for path in DUMPS])
    assert all(found.values())
