"""Run one golden case of placement: give our code its input, and return where the answer first differs.

The registry maps an `algorithm` to the function that answers a case's input. An answer has the shape of the case's
`expected`, but matrices stay matrices, and refusals are raised. Hints in a case, of Java's hash order, are not read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import attrs
import numpy as np

from broker.cluster import BrokerView, Int32Array
from broker.entropy import JavaRandom
from broker.errors import RefusedError
from broker.group.routing import offsets_partition, positive_hash
from broker.ids import broker_id
from broker.java.string_hash import java_string_hash
from broker.releases import NEWEST, Release
from placement.placers.classic import ClassicPlacer, rack_alternated_brokers
from placement.placers.striped import StripedPlacer
from placement.producer.keys import POSITIVE_MASK, murmur2, partition_of_key
from placement.spec import PlacementSpec, ReplicaPlacer
from tests.golden.consumers import ASSIGNOR_RUNNERS

Json: TypeAlias = Any
Runner: TypeAlias = Callable[[Mapping[str, Json]], Json]

DIGEST_ROW_COUNT: Final = 5
"""How many rows a digest shows at its head and at its tail."""

SHUFFLED_COUNT_MAX: Final = 1_000_000
"""How many items a case may have shuffled: more than any cluster has brokers."""

HASHED_ROW_COUNT: Final = 65_536
"""How many rows are written out at a time for a digest."""


class MalformedCaseError(Exception):
    """A case that is not of the layout, so that nothing can be said of our code."""


@attrs.frozen(eq=False)
class Rows:
    """A matrix answer, and the id of its first partition, which the digest's text begins with."""

    replicas: Int32Array
    first_partition: int = 0


def run_admin_utils(given: Mapping[str, Json], placer_from: Callable[[int], ReplicaPlacer] = ClassicPlacer) -> Json:
    """Answer a call of AdminUtils.assignReplicasToBrokers; `placer_from` makes a placer of the fixed start index."""
    brokers = [BrokerView(id=broker_id(broker["id"]), rack=broker["rack"]) for broker in given["brokers"]]
    spec = PlacementSpec(given["start_partition_id"], given["partitions"], given["replication_factor"])
    seed = given["random_seed"]
    replicas = placer_from(given["fixed_start_index"]).place(spec, brokers, JavaRandom(0 if seed is None else seed))
    has_racks = all(broker.rack is not None for broker in brokers)
    first_partition = max(0, spec.start_partition)
    return {
        "rack_alternated_brokers": list(rack_alternated_brokers(brokers)) if has_racks else None,
        "first_partition": first_partition,
        "replicas": Rows(replicas, first_partition),
    }


def run_striped(given: Mapping[str, Json], placer: ReplicaPlacer) -> Json:
    """Answer several calls of one StripedReplicaPlacer, and one draw from its generator after them."""
    brokers = [
        BrokerView(id=broker_id(broker["id"]), rack=broker["rack"], fenced=broker["fenced"])
        for broker in given["brokers"]
    ]
    random = JavaRandom(given["random_seed"])
    calls: list[Json] = []
    for call in given["calls"]:
        spec = PlacementSpec(call["start_partition"], call["partitions"], call["replication_factor"])
        try:
            calls.append({"replicas": Rows(placer.place(spec, brokers, random))})
        except RefusedError as refusal:
            if len(given["calls"]) == 1:
                raise
            calls.append({"error": described(refusal)})
    return {"calls": calls, "next_int_after": random.next_int()}


def run_java_random(given: Mapping[str, Json]) -> Json:
    """Answer a row of draws from one java.util.Random."""
    random = JavaRandom(given["seed"])
    results: list[Json] = []
    for operation in given["ops"]:
        match operation["op"]:
            case "next_int":
                results.append(random.next_int())
            case "next_int_bound":
                results.append(random.next_int_bound(operation["bound"]))
            case "shuffle":
                if operation["n"] > SHUFFLED_COUNT_MAX:
                    raise MalformedCaseError(f"shuffles {operation['n']} items; at most {SHUFFLED_COUNT_MAX} are run")
                items = list(range(operation["n"]))
                random.shuffle(items)
                results.append(items)
            case other:
                raise MalformedCaseError(f"unknown operation {other!r}")
    return {"results": results}


def run_key_partition(given: Mapping[str, Json]) -> Json:
    """Answer a key's hash, the hash without its sign, and the partition that the producer picks."""
    key = bytes.fromhex(given["key_hex"])
    hashed = murmur2(key)
    partition = partition_of_key(key, given["partitions"])
    return {"murmur2": hashed, "positive": hashed & POSITIVE_MASK, "partition": partition}


def run_group_partition(given: Mapping[str, Json]) -> Json:
    """Answer a group id's Java hash, its absolute value, and the group's partition of __consumer_offsets."""
    group_id = given["group_id"]
    partition = offsets_partition(group_id, given["partitions"])
    return {"hash_code": java_string_hash(group_id), "abs": positive_hash(group_id), "partition": partition}


def runners_of(release: Release) -> Mapping[str, Runner]:
    """Return by algorithm what answers as a release."""
    return {
        "admin_utils": run_admin_utils,
        "striped_replica_placer": partial(run_striped, placer=StripedPlacer(release)),
        "java_random": run_java_random,
        "producer_key_partition": run_key_partition,
        "group_coordinator_partition": run_group_partition,
        **ASSIGNOR_RUNNERS,
    }


RUNNERS: Final = runners_of(NEWEST)


def first_difference(case: Mapping[str, Json], runner: Runner) -> str | None:
    """Return where our answer to `case` first differs from what it expects, or None when it does not.

    Raises MalformedCaseError when the case is not of the layout.
    """
    if ("expected" in case) == ("expected_error" in case):
        raise MalformedCaseError("a case has exactly one of `expected` and `expected_error`")
    try:
        given, expected = case["input"], case.get("expected", {"error": case.get("expected_error")})
        if not isinstance(expected, Mapping):
            raise MalformedCaseError("`expected` is not an object")
        try:
            answer = runner(given)
        except RefusedError as refusal:
            answer = {"error": described(refusal)}
        return compare(answer, expected, "")
    except (KeyError, TypeError, AttributeError) as damage:
        raise MalformedCaseError(f"{type(damage).__name__}: {damage}") from damage


def described(refusal: RefusedError) -> Json:
    """Return a refusal as the vectors write Java's exceptions."""
    return {"class": refusal.kafka_class, "message": str(refusal)}


def compare(answer: Json, expected: Json, path: str) -> str | None:
    """Return the first place, by path, where `answer` is not `expected`, or None."""
    if isinstance(answer, dict) and isinstance(expected, dict):
        ours = in_form_of(expected, answer)
        if ours.keys() != expected.keys():
            return f"{path or 'answer'}: has {sorted(ours)}, expected {sorted(expected)}"
        pairs = [(f"{path}.{key}".lstrip("."), ours[key], expected[key]) for key in sorted(ours)]
    elif isinstance(answer, list) and isinstance(expected, list):
        if len(answer) != len(expected):
            return f"{path}: has {len(answer)} entries, expected {len(expected)}"
        entries = zip(answer, expected, strict=True)
        pairs = [(f"{path}[{index}]", ours, theirs) for index, (ours, theirs) in enumerate(entries)]
    else:
        same = type(answer) is type(expected) and answer == expected
        return None if same else f"{path}: is {answer!r}, expected {expected!r}"
    return next((found for found in (compare(ours, theirs, where) for where, ours, theirs in pairs) if found), None)


def in_form_of(expected: Mapping[str, Json], answer: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return `answer` with its matrix, if it has one, written out, or as a digest where `expected` has that."""
    matrix = answer.get("replicas")
    if not isinstance(matrix, Rows):
        return answer
    if "sha256" not in expected:
        return {**answer, "replicas": matrix.replicas.tolist()}
    others = {key: value for key, value in answer.items() if key != "replicas"}
    head, tail = matrix.replicas[:DIGEST_ROW_COUNT].tolist(), matrix.replicas[-DIGEST_ROW_COUNT:].tolist()
    return {**others, "count": len(matrix.replicas), "head": head, "tail": tail, "sha256": sha256_of(matrix)}


def sha256_of(answer: Rows) -> str:
    """Return the digest of the text `<partition>:<replica>,<replica>,…`, one line a partition."""
    assert answer.replicas.dtype == np.int32
    digest = hashlib.sha256()
    for start in range(0, len(answer.replicas), HASHED_ROW_COUNT):
        rows = answer.replicas[start : start + HASHED_ROW_COUNT].tolist()
        lines = (
            f"{partition}:{','.join(map(str, row))}\n"
            for partition, row in enumerate(rows, start=answer.first_partition + start)
        )
        digest.update("".join(lines).encode("ascii"))
    return digest.hexdigest()
