"""Print the golden case of a log directory: LogManager, started on it again and again.

How: the logs are written and shut down cleanly, loaded and shut down again; then the directory is made to look crashed,
loaded, and one partition is deleted. After each shutdown the directory is kept or listed, but for its lock.

Source: java/GoldenLogDir.java, which calls kafka.log.LogManager.
"""

from __future__ import annotations

import re
import shutil
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.golden.log.logdir import CUT_BYTES, crashed_partition
from tests.kafka.golden.jvm import GoldenJvm, Json

BROKER_EPOCH: Final = 78
CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOCK: Final = ".lock"
SHUTDOWN: Final = ".kafka_cleanshutdown"
_UNIQUE_ID: Final = re.compile(r"\.[0-9a-f]{32}-")


def printed_log_dir(kafka: GoldenJvm, given: Mapping[str, Json], old: Path, folder: Path) -> dict[str, Json]:
    """Return the case; `old` holds the directory whose batches are written again."""
    root, before = folder / "run", given["stateBeforeShutdown"]
    root.mkdir()
    how = {
        "root": str(root),
        "config": given["config"],
        "nowMs": max(row[4] for each in before for row in each["state"]["segments"]),
        "partitions": [{name: each[name] for name in ("topic", "partition", "topicId")} for each in before],
        "brokerEpoch": BROKER_EPOCH,
    }
    written = _run(kafka, how, made=[_made(each, old / "clean-shutdown") for each in before])
    shutil.copytree(root, folder / "clean-shutdown", ignore=shutil.ignore_patterns(LOCK))
    loaded = _run(kafka, how)
    lost = crashed_partition(given)
    crash(root, str(lost))
    shutil.copytree(root, folder / "crashed", ignore=shutil.ignore_patterns(LOCK))
    deleted = _run(kafka, how, deleted={"topic": lost.topic, "partition": lost.partition})
    shutil.rmtree(root)
    return {
        "config": given["config"],
        "stateBeforeShutdown": written["states"],
        "cleanShutdownFiles": listing(folder / "clean-shutdown"),
        "stateAfterCleanReopen": loaded["states"],
        "cleanShutdownFileStillThereAfterReopen": loaded["cleanShutdownFileStillThere"],
        "crashedFiles": listing(folder / "crashed"),
        "stateAfterCrashReopen": deleted["states"],
        "rootListingAfterAsyncDelete": [_UNIQUE_ID.sub(".<32 hex digits>-", name) for name in deleted["listing"]],
        "recoveryPointCheckpointAfterDelete": deleted["recoveryPoints"],
    }


def _run(kafka: GoldenJvm, how: Mapping[str, Json], **more: Json) -> Json:
    answer = kafka.ask("logdir", {**how, **more})
    assert "expected" in answer, answer
    return answer["expected"]


def _made(given: Mapping[str, Json], directory: Path) -> Json:
    """Return a partition with the bytes of its log, to be appended batch by batch."""
    logs = sorted((directory / f"{given['topic']}-{given['partition']}").glob("*.log"))
    records = b"".join(path.read_bytes() for path in logs)
    names = ("topic", "partition", "topicId")
    return {
        **{name: given[name] for name in names},
        "records": b64encode(records).decode("ascii"),
        "logStartOffset": given["state"]["logStartOffset"],
    }


def crash(root: Path, partition: str) -> None:
    """Make a directory look crashed: no marker, nothing known to be on the disk, the last log of a partition cut."""
    (root / SHUTDOWN).unlink()
    version, count, *lines = (root / CHECKPOINT).read_text("ascii").splitlines()
    points = [f"{line.rpartition(' ')[0]} 0" for line in lines]
    (root / CHECKPOINT).write_text("".join(f"{line}\n" for line in (version, count, *points)), "ascii")
    last = max((root / partition).glob("*.log"))
    last.write_bytes(last.read_bytes()[:-CUT_BYTES])


def listing(root: Path) -> Json:
    """Return name and size of the files of a directory and of its partitions, and the text of small ones."""
    inside = sorted(root.iterdir())
    return {
        "root": [_listed(path) for path in inside if path.is_file()],
        "partitions": [
            {"dir": path.name, "files": [_listed(file) for file in sorted(path.iterdir())]}
            for path in inside
            if path.is_dir()
        ],
    }


def _listed(path: Path) -> Json:
    listed: Json = {"file": path.name, "size": path.stat().st_size}
    return listed if path.name[:20].isdecimal() else {**listed, "text": path.read_text("utf-8")}
