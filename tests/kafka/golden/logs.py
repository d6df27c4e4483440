"""Print golden cases of log storage: run what a case gives on Kafka's log classes, and write down what they did.

What it decides: for each kind of case, what Kafka's classes are asked, and which keys the case has.

Constraints: `printed` writes into the folder it is given alone. Nothing in it depends on the time or the machine, but
for `meta.properties`, whose date line is set to `DATE_LINE`.

How: the case that comes in has what a case gives (settings, batches, operations, what is looked up) and may have
answers, which are not read. Damage is done here, as the runner of the golden cases does it; what Kafka makes of it is
asked.

Source: java/Golden*.java and java/LogProgram.java name the classes that are called.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from log.batches.in_buffer import batches_in
from tests.golden.log.recovery import DIGEST_LENGTH, OPENED_MS, SCENARIOS, Closed, Files
from tests.kafka.golden.jvm import GoldenJvm, Json
from tests.kafka.golden.log_dirs import printed_log_dir

Case: TypeAlias = dict[str, Json]
Printer: TypeAlias = Callable[[GoldenJvm, Mapping[str, Json], Path], Case]

CLOSED_MS: Final = 1_700_001_000_003
"""When the logs of `truncate` and `recovery` are begun."""
DATE_LINE: Final = "#Thu Jan 01 00:00:00 UTC 1970"
DIRECTORY: Final = "topic-0"


class CannotEndError(Exception):
    """Kafka's classes ended a program with an exception outside its operations; there is no case then."""


def printed(kafka: GoldenJvm, given: Mapping[str, Json], old: Path, folder: Path) -> Case:
    """Return the case that `given` becomes, its files written into `folder`; `old` has the files of `given`."""
    folder.mkdir(parents=True)
    head = {name: given[name] for name in ("case", "kind")}
    head |= {"source": kafka.source()}
    head |= {name: given[name] for name in ("description",) if name in given}
    if given["kind"] == "logdir":
        return head | printed_log_dir(kafka, given, old, folder)
    return head | PRINTERS[given["kind"]](kafka, given, folder)


def expected(kafka: GoldenJvm, what: str, **given: Json) -> Json:
    """Return what Kafka answered; raise CannotEndError where that is an exception."""
    answer = kafka.ask(what, given)
    if "expected" not in answer:
        raise CannotEndError(f"{what}: {answer['expected_error']}")
    return answer["expected"]


def print_batches(kafka: GoldenJvm, given: Mapping[str, Json], folder: Path) -> Case:
    """Print a file of batches; those without records have no input, and are given decoded."""
    file = given["expected"]["file"]
    if "input" not in given:
        emptied = given["expected"]["batches"]
        return {"expected": expected(kafka, "batches", folder=str(folder), file=file, emptied=emptied)}
    batches = given["input"]["batches"]
    told = expected(kafka, "batches", folder=str(folder), file=file, batches=batches)
    return {"input": given["input"], "expected": told}


def print_bitflips(kafka: GoldenJvm, given: Mapping[str, Json], folder: Path) -> Case:
    """Print what comes of each flipped bit of a batch."""
    batches, file = given["input"]["batches"], given["file"]
    outcomes = expected(kafka, "bitflips", folder=str(folder), file=file, batches=batches)
    return {"input": given["input"], "file": file, "outcomes": outcomes}


def print_segment(kafka: GoldenJvm, given: Mapping[str, Json], folder: Path) -> Case:
    """Print a segment: appends, files, look-ups and reads."""
    told = expected(
        kafka,
        "segment",
        folder=str(folder),
        config=given["config"],
        baseOffset=given["baseOffset"],
        appends=given["input"]["appends"],
        offsets=[row[0] for row in given["offsetLookups"]],
        timestamps=[[row[0], row[5]] for row in given["timestampLookups"]],
        reads=[row[:3] for row in given["reads"]],
    )
    return {"config": given["config"], "baseOffset": given["baseOffset"], "input": given["input"], **told}


def print_program(kafka: GoldenJvm, given: Mapping[str, Json], folder: Path) -> Case:
    """Print a program of operations."""
    asked = {name: given.get(name) for name in ("config", "startTimeMs", "topicId")}
    asked |= {"fileTimes": given["fileTimes"]} if "fileTimes" in given else {}
    told = expected(kafka, "log", **asked, ops=[_operation(each) for each in given["ops"]], folder=str(folder))
    shutil.rmtree(folder / "run")
    del told["folder"]
    return dict(told)


def _operation(given: Mapping[str, Json]) -> Json:
    """Return an operation without what it came to; what it looks up may stand in its result alone."""
    bare = {name: value for name, value in given.items() if name not in ("nowMs", "result", "state")}
    lookups = given.get("result", {}).get("lookups")
    if lookups is not None:
        one, many = ("epoch", "epochs") if given["op"] == "endOffsetForEpoch" else ("timestamp", "timestamps")
        bare[many] = [lookup[one] for lookup in lookups]
    return bare


def print_closed(kafka: GoldenJvm, given: Mapping[str, Json], folder: Path) -> Case:
    """Print the log that is written and closed before it is cut or damaged."""
    config, batches = given["config"], given["input"]["batches"]
    directory = str(folder / DIRECTORY)
    told = expected(kafka, "close", directory=directory, config=config, batches=batches, nowMs=CLOSED_MS)
    return {"config": config, "input": given["input"], **told}


def print_truncate(kafka: GoldenJvm, given: Mapping[str, Json], folder: Path) -> Case:
    """Print a log cut at every offset in turn, and not cut at all at its end."""
    case = print_closed(kafka, given, folder)
    results = []
    for offset in range(case["initialState"]["logEndOffset"] + 1):
        files = {path.name: path.read_bytes() for path in (folder / DIRECTORY).iterdir()}
        told = opened(kafka, files, given["config"], folder / "run", clean=True, recoveryPoint=0, truncateTo=offset)
        names = ("truncated", "state", "files", "leaderEpochCheckpoint")
        results.append({"offset": offset, **{name: told[name] for name in names}})
    return {**case, "results": results}


def opened(kafka: GoldenJvm, files: Files, config: Json, directory: Path, **how: Json) -> Json:
    """Return what a directory of these files opens as, or `exception` with the Java class of the refusal."""
    shutil.rmtree(directory, ignore_errors=True)
    place = directory / DIRECTORY
    place.mkdir(parents=True)
    for name, content in files.items():
        (place / name).write_bytes(content)
    answer = kafka.ask("open", {"directory": str(place), "config": config, "nowMs": OPENED_MS, **how})
    shutil.rmtree(directory)
    return answer["expected"] if "expected" in answer else {"exception": answer["expected_error"]["class"]}


def print_recovery(kafka: GoldenJvm, given: Mapping[str, Json], folder: Path) -> Case:
    """Print a log damaged in many ways: cut, flipped, and as the scenarios say."""
    case = print_closed(kafka, given, folder)
    files = {path.name: path.read_bytes() for path in sorted((folder / DIRECTORY).iterdir())}
    closed = Closed(files, case["initialState"]["logEndOffset"])
    last_log = closed.name(-1, "log")
    whole = files[last_log]

    def recovered(content: bytes) -> Json:
        damaged = {**files, last_log: content}
        told = opened(kafka, damaged, given["config"], folder / "run", clean=False, recoveryPoint=0, read=True)
        return told if "exception" in told else [told["logEndOffset"], told["segments"]]

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


def print_scenario(kafka: GoldenJvm, name: str, closed: Closed, config: Json, folder: Path) -> Case:
    """Print what the log opens as after the damage that the scenario's sentence names."""
    scenario, numbers = SCENARIOS[re.sub(r"\d+", "#", name)], tuple(map(int, re.findall(r"\d+", name)))
    point = scenario.recovery_point(closed, numbers)
    damaged = scenario.damage(closed, numbers)
    told = opened(kafka, damaged, config, folder / "run", clean=scenario.clean, recoveryPoint=point)
    if "exception" in told:
        raise CannotEndError(f"{name}: {told['exception']}")
    return {
        "scenario": name,
        "logEndOffset": told["logEndOffset"],
        "state": told["state"],
        "filesAfterOpen": told["files"],
        "filesAfterClose": [[file, size, digest[:DIGEST_LENGTH]] for file, size, digest in told["closedFiles"]],
    }


def print_checkpoints(kafka: GoldenJvm, given: Mapping[str, Json], folder: Path) -> Case:
    """Print each small file, and what is read in each text."""
    files, texts = [], []
    for each in given["files"]:
        path = folder / each["file"]
        content = {name: value for name, value in each.items() if name not in ("file", "text")}
        expected(kafka, "write", path=str(path), **content)
        if path.name == "meta.properties":
            path.write_text(re.sub(r"(?m)^#\w.*$", DATE_LINE, path.read_text("utf-8")), "utf-8")
        files.append({"file": each["file"], "text": path.read_text("utf-8"), **content})
    for each in given["parse"]:
        told = expected(kafka, "read", path=str(folder / "run" / "checkpoint"), text=each["text"])
        texts.append({"text": each["text"], **told})
    shutil.rmtree(folder / "run")
    return {"files": files, "parse": texts}


PRINTERS: Final[Mapping[str, Printer]] = {
    "batches": print_batches,
    "bitflips": print_bitflips,
    "checkpoints": print_checkpoints,
    "log": print_program,
    "recovery": print_recovery,
    "segment": print_segment,
    "truncate": print_truncate,
}
