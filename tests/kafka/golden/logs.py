"""Print golden cases of log storage: run what a case gives on Kafka's log classes, and write down what they did.

`printed` writes into the folder it is given alone, and depends on neither time nor machine: the date line of
`meta.properties` is set to `DATE_LINE`. Damage is done here, as the runner of the golden cases does it. A log directory
is written and shut down cleanly, loaded and shut down again; then it is made to look crashed, loaded, and one partition
is deleted. After each shutdown the directory is kept or listed, but for its lock.

Source: java/LogBatches, Segments, LogProgram, GoldenLogs, Checkpoints and LogDirs name the classes that are called.
"""

from __future__ import annotations

import re
import shutil
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from log.batches.in_buffer import batches_in
from tests.golden.log.logdir import CUT_BYTES, crashed_partition
from tests.golden.log.recovery import DIGEST_LENGTH, OPENED_MS, SCENARIOS, Closed, Files
from tests.kafka.jvm import Json, KafkaJvm, KafkaThrewError

Case: TypeAlias = dict[str, Json]
Printer: TypeAlias = Callable[[KafkaJvm, Mapping[str, Json], Path], Case]

CLOSED_MS: Final = 1_700_001_000_003
"""When the logs of `truncate` and `recovery` are begun."""
DATE_LINE: Final = "#Thu Jan 01 00:00:00 UTC 1970"
DIRECTORY: Final = "topic-0"
BROKER_EPOCH: Final = 78
CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOCK: Final = ".lock"
SHUTDOWN: Final = ".kafka_cleanshutdown"
_UNIQUE_ID: Final = re.compile(r"\.[0-9a-f]{32}-")


def printed(kafka: KafkaJvm, given: Mapping[str, Json], old: Path, folder: Path) -> Case:
    """Return the case that `given` becomes, its files written into `folder`; `old` has the files of `given`."""
    folder.mkdir(parents=True)
    head = {name: given[name] for name in ("case", "kind")}
    head |= {"source": kafka.source()}
    head |= {name: given[name] for name in ("description",) if name in given}
    if given["kind"] == "logdir":
        return head | printed_log_dir(kafka, given, old, folder)
    return head | PRINTERS[given["kind"]](kafka, given, folder)


def print_batches(kafka: KafkaJvm, given: Mapping[str, Json], folder: Path) -> Case:
    """Print a file of batches; those without records have no input, and are given decoded."""
    file = given["expected"]["file"]
    if "input" not in given:
        emptied = given["expected"]["batches"]
        return {"expected": kafka.call("batches", folder=str(folder), file=file, emptied=emptied)}
    batches = given["input"]["batches"]
    answer = kafka.call("batches", folder=str(folder), file=file, batches=batches)
    return {"input": given["input"], "expected": answer}


def print_bitflips(kafka: KafkaJvm, given: Mapping[str, Json], folder: Path) -> Case:
    """Print what comes of each flipped bit of a batch."""
    batches, file = given["input"]["batches"], given["file"]
    outcomes = kafka.call("bitflips", folder=str(folder), file=file, batches=batches)
    return {"input": given["input"], "file": file, "outcomes": outcomes}


def print_segment(kafka: KafkaJvm, given: Mapping[str, Json], folder: Path) -> Case:
    """Print a segment: appends, files, look-ups and reads."""
    answer = kafka.call(
        "segment",
        folder=str(folder),
        config=given["config"],
        baseOffset=given["baseOffset"],
        appends=given["input"]["appends"],
        offsets=[row[0] for row in given["offsetLookups"]],
        timestamps=[[row[0], row[5]] for row in given["timestampLookups"]],
        reads=[row[:3] for row in given["reads"]],
    )
    return {"config": given["config"], "baseOffset": given["baseOffset"], "input": given["input"], **answer}


def print_program(kafka: KafkaJvm, given: Mapping[str, Json], folder: Path) -> Case:
    """Print a program of operations."""
    asked = {name: given.get(name) for name in ("config", "startTimeMs", "topicId")}
    asked |= {"fileTimes": given["fileTimes"]} if "fileTimes" in given else {}
    answer = kafka.call("log", **asked, ops=[_operation(each) for each in given["ops"]], folder=str(folder))
    shutil.rmtree(folder / "run")
    del answer["folder"]
    return dict(answer)


def _operation(given: Mapping[str, Json]) -> Json:
    """Return an operation without what it came to; what it looks up may stand in its result alone."""
    bare = {name: value for name, value in given.items() if name not in ("nowMs", "result", "state")}
    lookups = given.get("result", {}).get("lookups")
    if lookups is not None:
        one, many = ("epoch", "epochs") if given["op"] == "endOffsetForEpoch" else ("timestamp", "timestamps")
        bare[many] = [lookup[one] for lookup in lookups]
    return bare


def print_closed(kafka: KafkaJvm, given: Mapping[str, Json], folder: Path) -> Case:
    """Print the log that is written and closed before it is cut or damaged."""
    config, batches = given["config"], given["input"]["batches"]
    directory = str(folder / DIRECTORY)
    answer = kafka.call("close", directory=directory, config=config, batches=batches, nowMs=CLOSED_MS)
    return {"config": config, "input": given["input"], **answer}


def print_truncate(kafka: KafkaJvm, given: Mapping[str, Json], folder: Path) -> Case:
    """Print a log cut at every offset in turn, and not cut at all at its end."""
    case = print_closed(kafka, given, folder)
    results = []
    for offset in range(case["initialState"]["logEndOffset"] + 1):
        files = {path.name: path.read_bytes() for path in (folder / DIRECTORY).iterdir()}
        answer = opened(kafka, files, given["config"], folder / "run", clean=True, recoveryPoint=0, truncateTo=offset)
        names = ("truncated", "state", "files", "leaderEpochCheckpoint")
        results.append({"offset": offset, **{name: answer[name] for name in names}})
    return {**case, "results": results}


def opened(kafka: KafkaJvm, files: Files, config: Json, directory: Path, **how: Json) -> Json:
    """Return what a directory of these files opens as, or `exception` with the Java class of the refusal."""
    shutil.rmtree(directory, ignore_errors=True)
    place = directory / DIRECTORY
    place.mkdir(parents=True)
    for name, content in files.items():
        (place / name).write_bytes(content)
    answer = kafka.ask("open", {"directory": str(place), "config": config, "nowMs": OPENED_MS, **how})
    shutil.rmtree(directory)
    return answer["expected"] if "expected" in answer else {"exception": answer["expected_error"]["class"]}


def print_recovery(kafka: KafkaJvm, given: Mapping[str, Json], folder: Path) -> Case:
    """Print a log damaged in many ways: cut, flipped, and as the scenarios say."""
    case = print_closed(kafka, given, folder)
    files = {path.name: path.read_bytes() for path in sorted((folder / DIRECTORY).iterdir())}
    closed = Closed(files, case["initialState"]["logEndOffset"])
    last_log = closed.name(-1, "log")
    whole = files[last_log]

    def recovered(content: bytes) -> Json:
        damaged = {**files, last_log: content}
        answer = opened(kafka, damaged, given["config"], folder / "run", clean=False, recoveryPoint=0, read=True)
        return answer if "exception" in answer else [answer["logEndOffset"], answer["segments"]]

    last = max(batch.position for batch in batches_in(whole))
    cuts = range(max(0, last - 3), len(whole) + 1) if last else range(len(whole) + 1)
    flips = [(place, given["flippedBits"][place % len(given["flippedBits"])]) for place in range(last, len(whole))]
    return {
        **case,
        "lastLog": last_log,
        "lastBatchPosition": last,
        "logEndOffset": closed.end_offset,
        "flippedBits": given["flippedBits"],
        "cuts": [[size, recovered(whole[:size])] for size in cuts],
        "flips": [[place, bit, recovered(_flipped(whole, place, bit))] for place, bit in flips],
        "scenarios": [
            print_scenario(kafka, each["scenario"], closed, given["config"], folder) for each in given["scenarios"]
        ],
    }


def _flipped(content: bytes, place: int, bit: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    return bytes(changed)


def print_scenario(kafka: KafkaJvm, name: str, closed: Closed, config: Json, folder: Path) -> Case:
    """Print what the log opens as after the damage that the scenario's sentence names."""
    scenario, numbers = SCENARIOS[re.sub(r"\d+", "#", name)], tuple(map(int, re.findall(r"\d+", name)))
    point = scenario.recovery_point(closed, numbers)
    damaged = scenario.damage(closed, numbers)
    answer = opened(kafka, damaged, config, folder / "run", clean=scenario.clean, recoveryPoint=point)
    if "exception" in answer:
        raise KafkaThrewError(answer["exception"], name)
    return {
        "scenario": name,
        "logEndOffset": answer["logEndOffset"],
        "state": answer["state"],
        "filesAfterOpen": answer["files"],
        "filesAfterClose": [[file, size, digest[:DIGEST_LENGTH]] for file, size, digest in answer["closedFiles"]],
    }


def print_checkpoints(kafka: KafkaJvm, given: Mapping[str, Json], folder: Path) -> Case:
    """Print each small file, and what is read in each text."""
    files, texts = [], []
    for each in given["files"]:
        path = folder / each["file"]
        content = {name: value for name, value in each.items() if name not in ("file", "text")}
        kafka.call("write_checkpoint", path=str(path), **content)
        if path.name == "meta.properties":
            path.write_text(re.sub(r"(?m)^#\w.*$", DATE_LINE, path.read_text("utf-8")), "utf-8")
        files.append({"file": each["file"], "text": path.read_text("utf-8"), **content})
    for each in given["parse"]:
        answer = kafka.call("read_checkpoint", path=str(folder / "run" / "checkpoint"), text=each["text"])
        texts.append({"text": each["text"], **answer})
    shutil.rmtree(folder / "run")
    return {"files": files, "parse": texts}


def printed_log_dir(kafka: KafkaJvm, given: Mapping[str, Json], old: Path, folder: Path) -> dict[str, Json]:
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
    written = kafka.call("logdir", **how, made=[_made(each, old / "clean-shutdown") for each in before])
    shutil.copytree(root, folder / "clean-shutdown", ignore=shutil.ignore_patterns(LOCK))
    loaded = kafka.call("logdir", **how)
    lost = crashed_partition(given)
    crash(root, str(lost))
    shutil.copytree(root, folder / "crashed", ignore=shutil.ignore_patterns(LOCK))
    deleted = kafka.call("logdir", **how, deleted={"topic": lost.topic, "partition": lost.partition})
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


PRINTERS: Final[Mapping[str, Printer]] = {
    "batches": print_batches,
    "bitflips": print_bitflips,
    "checkpoints": print_checkpoints,
    "log": print_program,
    "recovery": print_recovery,
    "segment": print_segment,
    "truncate": print_truncate,
}
