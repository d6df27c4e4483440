"""Say which rules and bounds a plan breaks, in sentences, with how many partitions or which broker.

What it decides: whether targets keep the rules of placement, and loads, bytes and topics the bounds of the certificate.

Constraints: no solver: only the view, the goal, the plan and its bounds.

Example: "replicas: broker 3 holds 9, outside 7 to 8".

Left out: what a plan must cost (check.py).

Source: ours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from broker.cluster import PAD, ClusterView, Int32Array, Int64Array
from broker.row_flags import any_in_row, distinct_in_row
from broker.wording import counted
from placement.reassignment.byte_band import faults_of_band
from placement.reassignment.certificate import Proof, Question, faults_of_bounds, uneven_topics
from placement.reassignment.check_input import Input, bytes_of
from placement.reassignment.goal import Goal, copy_sizes, shares


def among(left: Int32Array, right: Int32Array) -> NDArray[np.bool_]:
    """Return which values of `left` [P, V] stand in the same row of `right` [P, W], bool[P, V]."""
    found = np.zeros(left.shape, dtype=np.bool_)
    for column in range(right.shape[1]):
        found |= left == right[:, column : column + 1]
    return found


def faults_of_rows(view: ClusterView, goal: Goal, given: Input, target: Int32Array) -> list[str]:
    """Return the rules that targets break, each with how many partitions break it and one of them."""
    held = target >= 0
    live, fenced = np.append(given.live, False)[target], np.append(given.fenced, False)[target]
    new = held & ~among(target, given.rows)
    twice = np.zeros(target.shape[0], dtype=np.bool_)
    for first in range(target.shape[1]):
        for second in range(first + 1, target.shape[1]):
            twice |= held[:, first] & (target[:, first] == target[:, second])
    width = max(target.shape[1], given.rows.shape[1])
    same = (_widened(target, width) == _widened(given.rows, width)).all(axis=1)
    stays = (given.rows >= 0) & np.append(given.fenced, False)[given.rows]
    added = np.array([b.id in {number for number, _ in goal.add} for b in view.brokers] + [False], dtype=np.bool_)
    turned = _first_of(target) != _first_of(given.rows)
    rules = [
        ("a broker holds two replicas", twice),
        ("an excluded topic changes", ~given.changes & ~same),
        ("a replica stands on a broker that is removed", given.changes & any_in_row(held & ~live & ~fenced)),
        ("a broker that is down receives a replica", any_in_row(new & fenced)),
        ("a cordoned broker receives a replica", any_in_row(new & np.append(given.cordoned, False)[target])),
        ("a broker that is down becomes the preferred leader", turned & _first_is(target, given.fenced)),
        ("a broker that is down loses its replica", given.changes & any_in_row(stays & ~among(given.rows, target))),
        ("the number of replicas is not that asked", given.changes & ((held & live).sum(axis=1) != given.wanted)),
    ]
    if goal.only_leaders:
        rules.append(("a replica moves though only leaders may", any_in_row(new)))
    else:
        crowded = given.changes & _crowded(view, given, target)
        rules.append(("replicas stand on fewer racks than they can", crowded))
    if goal.new_only_receives:
        rules.append(("a broker that is not new receives a replica", any_in_row(new & ~added[target])))
    found = []
    for what, broken in rules:
        if broken.any():
            row = int(np.argmax(broken))
            table = view.partitions
            name = f"{view.topics[int(table.topic_index[row])].name}-{int(table.partition_ids[row])}"
            found.append(f"{what}: {counted(int(broken.sum()), 'partition')}, such as {name}")
    return found


def _first_of(rows: Int32Array) -> Int32Array:
    """Return the preferred leader of each row, int32[P], -1 for a row without replicas."""
    return rows[:, 0] if rows.shape[1] else np.full(rows.shape[0], PAD, dtype=np.int32)


def _first_is(rows: Int32Array, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which rows have a flagged broker as their preferred leader, bool[P]."""
    return np.append(flags, False)[_first_of(rows)]


def _widened(rows: Int32Array, width: int) -> Int32Array:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=PAD)


def _crowded(view: ClusterView, given: Input, target: Int32Array) -> NDArray[np.bool_]:
    """Return which partitions stand on fewer racks than possible, or share a rack where none must; bool[P]."""
    rack = np.append(Question.rack_numbers(view), PAD)
    racks = np.where(target >= 0, rack[target], PAD)
    kept = np.where(np.append(given.fenced, False)[target] & (target >= 0), racks, PAD)
    kept_open = np.where(_is_open(rack, given)[kept], kept, PAD)
    open_racks = np.unique(rack[:-1][given.live]).size - distinct_in_row(kept_open)
    closed = np.setdiff1d(rack[:-1][given.cordoned], rack[:-1][given.live & ~given.cordoned])
    held = np.where(np.append(given.live | given.fenced, False)[given.rows], rack[given.rows], PAD)
    for number in closed.tolist():  # A rack of cordoned brokers is open only to partitions that are there already.
        open_racks = open_racks - ~any_in_row(held == number)
    fresh = np.where(among(racks, kept) & (racks >= 0), PAD, racks)
    return np.asarray(distinct_in_row(fresh) < np.minimum(open_racks, given.wanted))


def _is_open(rack: Int32Array | Int64Array, given: Input) -> NDArray[np.bool_]:
    """Return which racks have a live broker, bool[R + 1]; the last stands for none."""
    flags = np.zeros(int(rack.max(initial=0)) + 2, dtype=np.bool_)
    flags[rack[:-1][given.live]] = True
    return flags


def faults_of_loads(
    view: ClusterView, question: Question, proof: Proof, before: Int64Array, after: Int64Array, what: str
) -> list[str]:
    """Return what is wrong with the bounds of loads, and the brokers whose loads int64[B] lie outside them."""
    found = [f"{what}: {fault}" for fault in faults_of_bounds(question, proof, before)]
    outside = question.live & ((after < proof.low) | (after > proof.high))
    for place in np.flatnonzero(outside)[:5].tolist():
        number = view.brokers[place].id
        found.append(
            f"{what}: broker {number} holds {int(after[place])}, outside {int(proof.low[place])} to "
            f"{int(proof.high[place])}"
        )
    if proof.is_even and proof.block.size:
        held = np.bincount(proof.block[question.live], after[question.live], proof.totals.size).astype(np.int64)
        if not np.array_equal(held, proof.totals):
            found.append(f"{what}: blocks of brokers hold {held.tolist()}, not {proof.totals.tolist()}")
    return found


def faults_of_bytes(view: ClusterView, goal: Goal, question: Question, proof: Proof, target: Int32Array) -> list[str]:
    """Return what is wrong with the band, and the brokers whose bytes lie outside it."""
    sizes, count = copy_sizes(view), question.live.size
    before = bytes_of(Input.read(view, goal).rows, sizes, count)
    found = faults_of_band(
        question, proof, shares=shares(view, goal), tolerance=goal.tolerance_millionths, before=before
    )
    after = bytes_of(target, sizes, count)
    outside = question.live & ((after < proof.low) | (after > proof.high))
    for place in np.flatnonzero(outside)[:5].tolist():
        found.append(
            f"broker {view.brokers[place].id} holds {int(after[place])} bytes, outside {int(proof.low[place])} to "
            f"{int(proof.high[place])}"
        )
    return [f"bytes: {fault}" for fault in found]


def faults_of_topics(view: ClusterView, goal: Goal, question: Question, proof: Proof, target: Int32Array) -> list[str]:
    """Return the topics of which a broker holds less or more than the bounds by topic allow."""
    if (proof.topics is None) == goal.per_topic:
        return ["bounds by topic are missing, or are there though nobody asked"]
    if proof.topics is None:
        return []
    count = question.live.size
    if any(one.shape != (len(view.topics), count) for one in (proof.topics.low, proof.topics.high, proof.topics.price)):
        return [f"bounds by topic are those of {proof.topics.low.shape[0]} topics; there are {len(view.topics)}"]
    placed = (target >= 0) & np.append(question.live, False)[target] & (question.wanted > 0)[:, None]
    cells = question.topic.astype(np.int64)[:, None] * count + target
    held = np.bincount(cells[placed], minlength=len(view.topics) * count).reshape(-1, count)
    asked = np.zeros(len(view.topics), dtype=np.bool_)
    asked[question.topic[question.wanted > 0]] = True
    wrong = question.live & asked[:, None] & ((held < proof.topics.low) | (held > proof.topics.high))
    spread = question.live & asked[:, None] & (proof.topics.high - proof.topics.low > 1)
    found = []
    for what, broken in (("outside its bounds by topic", wrong), ("between bounds wider than one replica", spread)):
        if broken.any():
            topic, broker = (int(place[0]) for place in np.nonzero(broken))
            found.append(
                f"broker {view.brokers[broker].id} holds {int(held[topic, broker])} replicas of "
                f"{view.topics[topic].name}, {what}"
            )
    uneven = uneven_topics(question, proof.topics)
    if uneven:
        name = view.topics[uneven[0]].name
        found.append(f"the bounds of {counted(len(uneven), 'topic')} are not the most even, such as {name}")
    return found
