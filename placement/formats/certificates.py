"""Write and read the certificate of a plan: goal, brokers, bounds, prices, counts, and the digest of the input.

Arrays stand in the order of `brokers`. The bytes of each partition's copy, who is in sync, and the summary have digests
of their own, as they change from minute to minute; a certificate of before has none of the last two.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import BROKER_FLAGS, BrokerView, ClusterView, Int64Array, TopicView
from broker.errors import InputError, UsageError
from broker.ids import BrokerId, broker_id
from broker.liveness import Liveness
from placement.formats.documents import parse_object
from placement.planning.certificate import Proof, TopicProof
from placement.planning.check import Certificate, Tally
from placement.planning.goal import Goal, copy_sizes

VERSION: Final = 1
_DIGESTS: Final = ("sizes_sha256", "isr_sha256", "summary_sha256")
_VECTORS: Final = ("low", "high", "even_low", "even_high", "block", "price")


@attrs.frozen(kw_only=True, eq=False)
class Certified:
    """Hold a certificate as read: all brokers, those that the goal adds too, topics, counts, and the input's digest."""

    goal: Goal
    brokers: tuple[BrokerView, ...]
    topics: tuple[TopicView, ...]
    certificate: Certificate
    counts: Mapping[str, Any]
    input_sha256: str
    sizes_sha256: str | None
    isr_sha256: str | None
    summary_sha256: str | None


def digest(view: ClusterView) -> str:
    """Return the digest of what a plan starts from, as hexadecimal digits."""
    names = [topic.name for topic in view.topics]
    rank, order = _ordered(view)
    table = view.partitions
    found = hashlib.sha256()
    brokers = [[one.id, one.rack, one.fenced, *_flags(one)] for one in view.brokers]
    held = sorted({names[index] for index in np.unique(table.topic_index).tolist()})
    found.update(json.dumps([brokers, held], separators=(",", ":")).encode())
    rows = table.replicas[order]
    widest = int(np.count_nonzero(rows >= 0, axis=1).max(initial=0))
    used = np.unique(rank[table.topic_index])
    columns = [np.searchsorted(used, rank[table.topic_index[order]]), table.partition_ids[order]]
    columns += [rows[:, place] for place in range(widest)]
    columns += [] if table.leader is None else [table.leader[order]]
    for column in columns:
        found.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
    return found.hexdigest()


def _flags(broker: BrokerView) -> list[str]:
    """Return the rare states that a broker is in, by name, and what is stated of it."""
    stated = [] if broker.stated is None else [f"stated {broker.stated.value}"]
    return [name for name in BROKER_FLAGS[1:] if getattr(broker, name)] + stated


def sizes_digest(view: ClusterView, goal: Goal) -> str | None:
    """Return the digest of what each new replica would copy, in hexadecimal digits; None by replicas."""
    if not goal.by_bytes:
        return None
    return hashlib.sha256(np.ascontiguousarray(copy_sizes(view)[_ordered(view)[1]], dtype="<i8").tobytes()).hexdigest()


def isr_digest(view: ClusterView) -> str:
    """Return the digest of who is in sync and who is offline, in hexadecimal digits."""
    found, order = hashlib.sha256(), _ordered(view)[1]
    for matrix in (view.partitions.isr, view.partitions.offline):
        found.update(b"unknown" if matrix is None else b"known")
        for column in range(0 if matrix is None else int(np.count_nonzero(matrix >= 0, axis=1).max(initial=0))):
            assert matrix is not None
            found.update(np.ascontiguousarray(matrix[order, column], dtype="<i8").tobytes())
    return found.hexdigest()


def summary_digest(summary: Mapping[str, Any]) -> str:
    """Return the digest of a summary's names and values, however they are written, in hexadecimal digits."""
    return hashlib.sha256(json.dumps(summary, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _ordered(view: ClusterView) -> tuple[Int64Array, Int64Array]:
    """Return the rank of each topic by name, and the rows by topic name and partition id."""
    names = [topic.name for topic in view.topics]
    rank = np.empty(len(names), dtype=np.int64)
    rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    table = view.partitions
    order = np.lexsort((table.partition_ids, rank[table.topic_index])) if table.count else np.empty(0, dtype=np.int64)
    return rank, order.astype(np.int64)


def certificate_json(
    view: ClusterView,
    goal: Goal,
    certificate: Certificate,
    counts: Mapping[str, int | None],
    *,
    input_sha256: str,
    summary: Mapping[str, Any] | None = None,
) -> str:
    """Return the certificate of a plan as JSON; `view` has the added brokers, `counts` say what the plan changes.

    `summary` is what lies beside it, None if nothing does.
    """
    added = {number for number, _ in goal.add}
    value = {
        "version": VERSION,
        "input_sha256": input_sha256,
        "sizes_sha256": sizes_digest(view, goal),
        "isr_sha256": isr_digest(view),
        "summary_sha256": None if summary is None else summary_digest(summary),
        "goal": attrs.asdict(goal),
        **counts,
        "brokers": [
            {"id": one.id, "rack": one.rack, "fenced": one.fenced, "added": one.id in added}
            | {name: True for name in BROKER_FLAGS[1:] if getattr(one, name)}
            | ({} if one.stated is None else {"stated": one.stated.value})
            for one in view.brokers
        ],
        "topics": [topic.name for topic in view.topics],
        "replicas": None if certificate.replicas is None else _proof_value(certificate.replicas),
        "leaders": _proof_value(certificate.leaders),
    }
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False) + "\n"


def read_certificate(text: str, *, source: str) -> Certified:
    """Return the certificate in `text`; raise InputError where it has not the shape of one."""
    value = parse_object(text, source=source)
    if value.get("version") != VERSION:
        raise InputError(f"is no certificate of version {VERSION}", source=source, value=str(value.get("version")))
    try:
        goal = _goal(value["goal"])
        added = {number for number, _ in goal.add}
        brokers = tuple(_broker(one, added) for one in value["brokers"])
        topics = tuple(map(str, value["topics"]))
        if len(set(topics)) < len(topics):
            raise ValueError("a topic is listed twice")
        replicas = None if value["replicas"] is None else _proof(value["replicas"], len(brokers))
        leaders, counts = _proof(value["leaders"], len(brokers)), attrs.fields_dict(Tally)
        return Certified(
            goal=goal,
            brokers=brokers,
            topics=tuple(map(TopicView, topics)),
            certificate=Certificate(replicas=replicas, leaders=leaders),
            counts={name: value[name] for name in counts},
            input_sha256=str(value["input_sha256"]),
            **{name: None if value.get(name) is None else str(value[name]) for name in _DIGESTS},
        )
    except (KeyError, TypeError, ValueError, OverflowError, UsageError) as wrong:
        what = f"is no certificate of a plan: {type(wrong).__name__} {wrong}"
        raise InputError(what, source=source) from None


def _goal(value: Mapping[str, Any]) -> Goal:
    """Return the goal of a certificate, which has every field: a default is no proof of what was asked."""
    missing = [name for name in attrs.fields_dict(Goal) if name not in value]
    if missing:
        raise ValueError(f"the goal has no {missing[0]!r}")
    switches = ("only_leaders", "per_topic", "new_only_receives", "strict_racks")
    raw = dict(value) | {name: _truth(value, name) for name in switches}
    raw |= {
        "remove": tuple(broker_id(number, where="a broker to remove") for number in value["remove"]),
        "add": tuple((broker_id(number, where="a broker to add"), _rack(rack)) for number, rack in value["add"]),
        "exclude_topics": tuple(map(str, value["exclude_topics"])),
        "capacity": tuple((broker_id(number, where="a broker's id"), int(size)) for number, size in value["capacity"]),
    }
    return Goal(**raw)


def _broker(value: Mapping[str, Any], added: set[BrokerId]) -> BrokerView:
    number = broker_id(value["id"], where="a broker's id")
    if _truth(value, "added") != (number in added):
        raise ValueError(f"broker {number} is {'not ' if number in added else ''}added, unlike in the goal")
    flags: dict[str, Any] = {name: _truth(value, name) for name in BROKER_FLAGS if name in value or name == "fenced"}
    stated = Liveness(value["stated"]) if "stated" in value else None
    return BrokerView(id=number, rack=_rack(value["rack"]), stated=stated, **flags)


def _truth(value: Mapping[str, Any], name: str) -> bool:
    found = value[name]
    if not isinstance(found, bool):
        raise ValueError(f"{name} is {found!r}, neither true nor false")
    return found


def _proof_value(proof: Proof) -> dict[str, Any]:
    value: dict[str, Any] = {name: getattr(proof, name).tolist() for name in _VECTORS}
    value |= {"totals": proof.totals.tolist(), "weight": proof.weight, "is_even": proof.is_even, "topics": None}
    if proof.topics is not None:
        value["topics"] = {name: getattr(proof.topics, name).tolist() for name in ("low", "high", "price")}
    return value


def _proof(value: Mapping[str, Any], count: int) -> Proof:
    vectors = {name: _vector(value[name], name) for name in (*_VECTORS, "totals")}
    for name in _VECTORS:
        if vectors[name].shape != (count,):
            raise ValueError(f"{name} has {vectors[name].size} numbers for {count} brokers")
    if vectors["block"].max(initial=-1) >= vectors["totals"].size:
        raise ValueError("a block has no total")
    if vectors["block"].min(initial=0) < -1:
        raise ValueError(f"a block is {vectors['block'].min()}; allowed are -1, for none, and more")
    topics = None
    if value["topics"] is not None:
        given = {name: np.array(value["topics"][name], dtype=np.int64) for name in ("low", "high", "price")}
        if any(one.ndim != 2 or one.shape[1] != count for one in given.values()):
            raise ValueError("bounds by topic are not one list of numbers of brokers for each topic")
        topics = TopicProof(**given)
    weight = int(value["weight"])
    if weight < 1:
        raise ValueError(f"weight is {weight}")
    return Proof(weight=weight, is_even=bool(value["is_even"]), topics=topics, **vectors)


def _rack(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"rack is {value}, no text")
    return value


def _vector(values: Sequence[Any], name: str) -> Int64Array:
    vector = np.array(values, dtype=np.int64)
    if vector.ndim != 1 or any(isinstance(one, bool | float) for one in values):
        raise ValueError(f"{name} is no list of whole numbers")
    return vector
