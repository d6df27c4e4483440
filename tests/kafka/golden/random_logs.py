"""Draw random log cases for the golden archive, without answers.

Constraints: the cases are a function of the seed alone; names begin with `seed-N-`.

How: batches and programs are those of the differential comparison. Segments, truncations, recoveries and the log
directory are the cases that are checked in, with other records, sizes and settings, so that all they do is done on
other bytes. Checkpoints have other entries, and their malformed texts have a sign more, less or changed.

Left out: batches without records, which have no input.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.kafka.batches import draw
from tests.kafka.jvm import Json
from tests.kafka.programs import random_program

BATCHES_COUNT: Final = 40
BITFLIPS_COUNT: Final = 3
PROGRAM_COUNT: Final = 40
OTHERS: Final = ("segment", "truncate", "recovery", "checkpoints", "logdir")
FIRST_FILE: Final = "topic-0/00000000000000000000.log"
WORDS: Final = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel")
CODECS: Final = ("none", "none", "gzip", "lz4", "snappy", "zstd")


def random_log_cases(seed: int, given: Mapping[str, Mapping[str, Json]]) -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield new cases, each with the name of the given one whose files it needs; `given` has the cases by name."""
    for number in range(BATCHES_COUNT):
        batches = draw(seed, number).batches
        yield "", _case(seed, f"batches-{number}", "batches", input={"batches": batches}, expected={"file": FIRST_FILE})
    for number in range(BITFLIPS_COUNT):
        batch = draw(seed, BATCHES_COUNT + number).batches[0]
        yield "", _case(seed, f"bitflips-{number}", "bitflips", input={"batches": [batch]}, file=FIRST_FILE)
    for number in range(PROGRAM_COUNT):
        program = random_program(seed, number)
        yield "", {**program, "case": f"seed-{seed}-log-{number}"}
    for name, case in given.items():
        if case["kind"] in OTHERS:
            chance = random.Random(f"golden/{seed}/{name}")
            yield name, {**_varied(chance, case), "case": f"seed-{seed}-{name}"}


def _case(seed: int, name: str, kind: str, **content: Any) -> dict[str, Json]:
    return {"case": f"seed-{seed}-{name}", "kind": kind, **content}


def _varied(chance: random.Random, case: Mapping[str, Json]) -> dict[str, Json]:
    match case["kind"]:
        case "segment":
            appends = [[_batch(chance, batch) for batch in batches] for batches in case["input"]["appends"]]
            return {**case, "input": {"appends": appends}}
        case "truncate" | "recovery":
            codec = chance.choice(CODECS)
            batches = [_batch(chance, {**batch, "compression": codec}) for batch in case["input"]["batches"]]
            config = {**case["config"], "index.interval.bytes": chance.choice((0, 100, 256))}
            bits = [chance.randrange(8) for _ in range(64)]
            return {**case, "config": config, "input": {"batches": batches}, "flippedBits": bits}
        case "checkpoints":
            return {**case, **_checkpoints(chance, case)}
    return {**case, "config": {**case["config"], "index.interval.bytes": chance.choice((0, 100, 200, 400))}}


def _batch(chance: random.Random, batch: Mapping[str, Json]) -> dict[str, Json]:
    """Return a batch of as many records, at the same times, with other keys and values."""
    return {**batch, "records": [_record(chance, record) for record in batch["records"]]}


def _record(chance: random.Random, record: Mapping[str, Json]) -> dict[str, Json]:
    texts = {name: " ".join(chance.choices(WORDS, k=chance.randrange(length))) for name, length in _LENGTHS.items()}
    return {**record, **{name: base64.b64encode(text.encode()).decode("ascii") for name, text in texts.items()}}


_LENGTHS: Final = {"key": 2, "value": 6}


def _checkpoints(chance: random.Random, case: Mapping[str, Json]) -> dict[str, Json]:
    files = [_small_file(chance, file) for file in case["files"]]
    texts = [{"text": _malformed(chance, each["text"])} for each in case["parse"] for _ in range(4)]
    return {"files": files, "parse": texts}


def _small_file(chance: random.Random, file: Mapping[str, Json]) -> dict[str, Json]:
    if file["file"].endswith("offset-checkpoint"):
        topics = chance.sample(WORDS, chance.randrange(len(WORDS)))
        entries = [[topic, chance.randrange(12), chance.randrange(2 ** chance.randrange(64))] for topic in topics]
    elif file["file"] == "leader-epoch-checkpoint":
        epochs = sorted(chance.sample(range(1000), chance.randrange(9)))
        entries = [[epoch, 17 * epoch + chance.randrange(17)] for epoch in epochs]
    elif file["file"] == ".kafka_cleanshutdown":
        return {**file, "brokerEpoch": chance.randrange(2**63)}
    else:
        return dict(file)
    return {**file, "entries": entries}


def _malformed(chance: random.Random, text: str) -> str:
    place = chance.randrange(len(text) + 1)
    sign = chance.choice("0 9-x\n\r\t.")
    return text[:place] + chance.choice(("", sign)) + text[place + chance.choice((0, 1)) :]
