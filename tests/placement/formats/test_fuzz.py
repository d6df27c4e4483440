"""Twenty thousand damaged inputs: every parser answers or raises InputError, and the sum of rows holds."""

from __future__ import annotations

import json
import random

import pytest

from broker.errors import InputError
from placement.formats.read import FORMATS, check_head, read_dump
from tests.placement.formats.samples import HEADER, REAL_DATA, ROW_0, ROW_1

KCAT = json.dumps(
    {
        "originating_broker": {"id": 1, "name": "b1:9092/1"},
        "query": {"topic": "*"},
        "controllerid": 1,
        "brokers": [{"id": 1, "name": "b1:9092"}, {"id": 2, "name": "b2:9092"}],
        "topics": [
            {
                "topic": "orders",
                "partitions": [{"partition": 0, "leader": 1, "replicas": [{"id": 1}, {"id": 2}], "isrs": [{"id": 1}]}],
            }
        ],
    }
)
PARTITION = {
    "topic": "a",
    "partition": 0,
    "leader": 1,
    "replicas": [1, 2],
    "in-sync": [1],
    "offline": [2],
    "min-isr": 2,
}
STATE = json.dumps(
    {
        "KafkaBrokerState": {
            "LeaderCountByBrokerId": {"1": 1, "2": 0},
            "ReplicaCountByBrokerId": {"1": 1, "2": 1},
            "Summary": {"Brokers": 2},
        },
        "KafkaPartitionState": {"urp": [PARTITION], "under-min-isr": [PARTITION], "other": []},
    }
)
PLAN = '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1,2],"log_dirs":["any","/d"]}]}'
GENERATED = f"Current partition replica assignment\n{PLAN}\n\nProposed partition reassignment configuration\n{PLAN}\n"
HEADER_LINES = (HEADER + ROW_0 + ROW_1).encode().splitlines(keepends=True)
ONE_TOPIC = ("01-kcat-L.txt", "10-msk-partitions.json", "52-rpk.txt", "57-zkcli.txt", "pasted/wrapped.txt")
TEXTS = (
    (HEADER + ROW_0 + ROW_1).encode(),
    (HEADER + ROW_0 + ROW_1).replace("\t", "   ").encode(),
    (REAL_DATA / "multiregion/3-west-region-stopped.txt").read_bytes(),
    (HEADER + ROW_0).encode("utf-16"),
    KCAT.encode(),
    STATE.encode(),
    PLAN.encode(),
    GENERATED.encode(),
    ("[pod/kafka-0] " + GENERATED.replace("\n", "\n[pod/kafka-0] ")).encode(),
    *(b"".join(b"2026-11-28T10:00:00.%03dZ " % n + line for n, line in enumerate(HEADER_LINES)),),
    *((REAL_DATA / f"reported/{name}").read_bytes() for name in ONE_TOPIC),
    (REAL_DATA / "cruise-control/responses/CC-State.json").read_bytes(),
    b'{"summary":{"a":1},"proposals":[],"loadAfterOptimization":{"brokers":[{"Broker":0,"Replicas":2,"Leaders":1}]}}',
    b'{"userTasks":[{"originalResponse":"{\\"brokers\\":[{\\"Broker\\":0,\\"Replicas\\":2,\\"Leaders\\":1}]}"}]}',
)
SHARDS = (
    b"\t", b"\n", b" ", b",", b":", b"-", b"-1", b"none", b"N/A", b"Isr: ", b"Topic: ", b"Configs: ", b"Partition: ",
    b"9" * 30, b"999999999999", b"1e400", b"NaN", b"null", b"true", b"[", b"]", b"{", b"}", b'"', b"\\ud800", b"\x00",
    b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"1,1", b'"1"', b"[" * 3000, b'{"a":' * 50, b"2147483648", b"0.5",
)  # fmt: skip


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return `data` after one to four small accidents."""
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(data) + 1)
        end = min(len(data), start + chance.choice((0, 0, 1, 3, 20)))
        piece = chance.choice((*SHARDS, data[start : start + 30], bytes([chance.randrange(256)])))
        data = data[:start] + piece + data[end:]
        if chance.random() < 0.1:
            data = data[: chance.randrange(len(data) + 1)]
    return data


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 10))])
def test_damage_ends_in_an_answer_or_an_input_error_and_every_row_is_counted(seed: int) -> None:
    chance = random.Random(seed)
    answers = errors = 0
    for _ in range(2_000):
        data = damaged(chance.choice(TEXTS), chance)
        cut = chance.randrange(len(data) + 1)
        named = chance.choice((None, None, None, *FORMATS))
        try:
            dump = read_dump([data[:cut], data[cut:]], source="f", format=named)
        except InputError as error:
            errors += error.source == "f"
            continue
        answers += 1
        assert dump.rows_in == dump.rows_analysed + dump.rows_rejected, data
        assert dump.rows_rejected == len(dump.rejects), data
        assert all(len(reject.value) <= 200 for reject in dump.rejects), data
        str(dump.rejects).encode()  # No unpaired surrogate is left in what will be written to tables.
    assert answers > 200
    assert answers + errors == 2_000


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 5))])
def test_what_the_beginning_of_a_file_is_refused_for_the_whole_file_is_too(seed: int) -> None:
    chance = random.Random(seed)
    refused = unknown = 0
    for _ in range(1_000):
        data = damaged(chance.choice(TEXTS), chance)
        named = chance.choice((None, None, None, *FORMATS))
        whole = beginning = ""
        try:
            read_dump([data], source="f", format=named)
        except InputError as error:
            whole = str(error)
        try:
            check_head(data, source="f", format=named)
        except InputError as error:
            beginning = str(error)
        assert beginning in ("", whole), data
        refused += bool(beginning)
        unknown += "no known format" in whole or "no line describes" in whole
        assert bool(beginning) >= ("no known format" in whole or "no line describes" in whole), data
    assert min(refused, unknown) > 50
