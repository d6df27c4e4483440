"""List mutants that change nothing that could be observed, each with the reason.

What it decides: which survivors of a mutation run are no gap. The name is `Mutant.name`: a mutant of other text is
another mutant, and has to be looked at again. Three kinds need no look: arguments of `min` and `max`, as numbers that
are equal are the same; a timer's time and delay, which are added; the first number and the step of a tally.

Source: ours.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tests.architecture.house import ROOT
from tests.replication.mutants.operators import Mutant

_CLASSIC: Final = "replication/groups/client/classic_client.py"
_CONNECTIONS: Final = "replication/groups/connections.py"
_HERD: Final = "broker/group/zookeeper/herd.py"
_LEADER_RULES: Final = "log/partition/leader_rules.py"
_SEGMENT_RECOVERY: Final = "log/partition/segment_recovery.py"
EQUIVALENT: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{
            f"{_HERD} _tell [dropped operand] consumer.is_alive and not consumer.has_failed -> ({kept})": (
                "who is dead or has failed is woken in vain: `_wake` looks at the same, and only another delay is drawn"
            )
            for kept in ("consumer.is_alive", "not consumer.has_failed")
        },
        f"{_HERD} _is_claimed [dropped branch] refused.code is not ZnodeCode.NODE_EXISTS -> False": (
            "the folder of the owner nodes is there from the beginning, so that nothing else refuses a new one"
        ),
        f"{_CLASSIC} _poll_group [dropped operand] self._is_joining or self._is_closing -> (self._is_closing)": (
            "`_join` looks at the same; who joins and has lost the coordinator only looks for it sooner"
        ),
        f"{_CLASSIC} _take_assignment [dropped call] self.subscriptions.pause(revoked) -> pass": (
            "until the partitions are given up the application is in its listener's callback, and reads nothing"
        ),
        f"{_CLASSIC} _refresh_topics [dropped branch] self._assigned_counts is None -> False": (
            "the timer that is set instead of cancelled asks nothing when it ends, as it looks at the counts again"
        ),
        f"{_CONNECTIONS} answer [dropped operand] end is not None and end.session == caller.session and "
        "caller.ticket in end.answers -> (end.session == caller.session and caller.ticket in end.answers)": (
            "callers come from `take` of the same ends, which made the end, and no end is ever removed"
        ),
        f"{_CONNECTIONS} take [off by one] 0 -> 1": ("tickets begin with 1, so that none is below either number"),
        f"{_CONNECTIONS} take [comparison] asked.ticket < min(end.answers, default=Ticket(0)) -> "
        "(asked.ticket <= min(end.answers, default=Ticket(0)))": (
            "a ticket that equals the least of those known is known, which is asked before"
        ),
        f"{_CONNECTIONS} take [dropped call] end.answers = {{ticket: answer for ticket, answer in end.answers.items() "
        "if ticket >= asked.floor} -> pass": (
            "a client never asks again for what is below the floor that it told; only memory is not given back"
        ),
        "replication/rules/fetch.py answer_fetch [dropped branch] is_of_latest and request.offset <= log.end_offset -> "
        "False": ("the branch spares nearly every fetch the look-up, which finds that the logs do not part"),
        "replication/rules/election.py elect [dropped operand] ballot.leader != NO_LEADER and "
        "ballot.is_valid(ballot.leader) -> (ballot.is_valid(ballot.leader))": (
            "no leader is no broker, and is in no ISR and no ELR"
        ),
        "replication/rules/fetch.py check_leader_epoch [comparison] leader_epoch < role.leader_epoch -> "
        "(leader_epoch <= role.leader_epoch)": ("only epochs that differ come to the comparison"),
        "replication/rules/isr.py is_eligible [dropped operand] status is None or status.fenced or "
        "follower.broker_epoch is None -> "
        "(status is None or status.fenced)": ("an epoch that is None is neither -1 nor that of the broker"),
        "log/partition/leader_rules.py _check_timestamps [comparison] low <= min(timestamps) -> "
        "(low < min(timestamps))": (
            "a time at the limit is looked at once more, record by record, and is none of the wrong ones"
        ),
        "log/partition/segment_recovery.py _recover_columns [off by one] 1 -> 2 (2)": (
            "a first epoch that equals the other number is negative, and such epochs are not assigned"
        ),
        "log/partition/segment_recovery.py _regular_headers [off by one] 0 -> 1 (4)": (
            "batches of one record are recovered one by one then, with the same outcome: a test holds the two together"
        ),
        'broker/group/classic/group.py stored [dropped operand] record.protocol_name or "" -> (record.protocol_name)': (
            "a record that has members names the protocol that their group chose"
        ),
        "broker/group/classic/coordinator.py _add [dropped operand] group.state is GroupState.PREPARING_REBALANCE and "
        "group.previous_state is GroupState.EMPTY -> (group.previous_state is GroupState.EMPTY)": (
            "no other state than this one follows upon an empty group that is still there"
        ),
        "log/partition/segment_recovery.py _regular_headers [off by one] 0 -> 1 (3)": (
            "a segment that begins with a batch of one record is recovered batch by batch then, with the same outcome"
        ),
        "broker/group/consumer/records.py _removed [dropped operand] version == CURRENT and name in group.members -> "
        "(name in group.members)": ("of the keys that are left only that of a member's assignment has a name"),
        "replication/roles/replica_log.py start_anew [dropped call] self.set_high_watermark(after.high_watermark) -> "
        "pass": ("a log without records has one possible high watermark, and truncating it sets that"),
        "replication/groups/member.py _do [dropped operand] client is None or client.is_over -> (client.is_over)": (
            "without a process `handle` drops what comes and `_happen` does nothing; a crash also ends a freeze"
        ),
        "replication/groups/member.py __init__ [dropped call] self._is_probing = False -> pass": (
            "`_begin_session`, which is called next, sets it"
        ),
        "replication/groups/client/consumer_client.py __init__ [off by one] 0 -> 1": (
            "until the first answer tells the interval, and that is longer than 1 ms, only urgent heartbeats are sent"
        ),
        **{
            f"replication/groups/commits.py {name} [off by one] 1 -> 2": "times are not negative: both lie before all"
            for name in ("impossible", "_why_impossible")
        },
        "replication/groups/shard.py on_due [dropped operand] due.number != self.number or self.is_loading -> "
        "(self.is_loading)": ("a timer of a former shard finds nothing due, and sets another for the same time"),
        "replication/groups/client/client.py __init__ [dropped call] self._is_busy = False -> pass": (
            "the first poll, at the start, sets it before anything looks at it"
        ),
        "replication/roles/follower.py __init__ [dropped call] self._sent_offset = UNKNOWN_OFFSET -> pass": (
            "no answer bears the number of a request before the first, which sets it"
        ),
        "replication/roles/follower.py __init__ [dropped call] self.replica_role = ReplicaRole.NONE -> pass": (
            "`BrokerRole`, the only one that makes followers, states the role at once"
        ),
        "log/partition/reading.py _aborted_transactions [dropped branch] collected.is_complete -> False": (
            "once a last stable offset is at or behind what was read, later transactions begin behind it: more indexes "
            "are read, and nothing more is found"
        ),
        "replication/roles/broker_role.py append [off by one] 1 -> 2": (
            "the numbers only name a hosted role's appends, and rise all the same"
        ),
        "replication/roles/controller.py settings_of [dropped branch] replica_count == "
        "len(self.image.partitions[partition].replicas) -> False": (
            "the count that is set is the partition's own then, which `change` takes where none is set"
        ),
        "replication/roles/follower.py on_fetch_response [dropped operand] response.records and not "
        "self._append(response.records, moment, out) -> (not self._append(response.records, moment, out))": (
            "to append no bytes raises the version of the log only, and answers that were kept are made anew"
        ),
        "replication/roles/replica_log.py read [off by one] 0 -> 1": ("a batch is longer than a byte"),
        "replication/roles/replica_log.py start_anew [off by one] 1 -> 2": (
            "the number only lies above 0, so that a cut to 0 is noted"
        ),
        f"{_LEADER_RULES} _check_timestamps [dropped operand] stamps or not timestamps or (low <= min(timestamps) and "
        "max(timestamps) <= high) -> (not timestamps or (low <= min(timestamps) and max(timestamps) <= high))": (
            "with LogAppendTime the look at each record asks for its type only, and the type is right here"
        ),
        "log/partition/log_offsets.py update_first_unstable_offset [dropped operand] first is not None and (first < "
        "start or not self.producers.is_first_unstable_placed) -> (first is not None)": (
            "a transaction that was appended begins with a batch, which is not cleaned before it is decided: a look-up "
            "answers with the same offset"
        ),
        "log/partition/reading.py place_of [dropped operand] offset > end.offset or segment is None -> (segment is "
        "None)": (
            "a start above the log's end is refused before, and the high watermark lies in the log; where the log "
            "starts above its end, every start is refused"
        ),
        **{
            f"replication/roles/replica_log.py {change}": (
                "only speed: the batch that was appended last is read from the file instead, and of one for which the "
                "log was rolled nothing is kept"
            )
            for change in (
                "append_as_leader [dropped call] self._appended = Appended(info.first_offset, self.version, "
                "bytes(segment.records.view()[position:])) -> pass",
                "append_as_leader [dropped branch] segment is self.log.active_segment -> False",
                "append_as_leader [comparison] segment is self.log.active_segment -> (segment is not "
                "self.log.active_segment)",
                "append_as_leader [negated condition] segment is self.log.active_segment -> (not (segment is "
                "self.log.active_segment))",
                "read [dropped branch] appended.is_at(offset, self.version) and 0 < len(appended.records) <= bytes_max "
                "-> False",
            )
        },
        **{
            f"{_SEGMENT_RECOVERY} recover_segment [{change}": (
                "only speed: segments of any size are recovered by both ways with the same outcome, which a test and "
                "the campaign hold together"
            )
            for change in (
                "dropped branch] segment.size_bytes >= COLUMNS_FROM_BYTES -> False",
                "comparison] segment.size_bytes >= COLUMNS_FROM_BYTES -> (segment.size_bytes > COLUMNS_FROM_BYTES)",
                "negated condition] segment.size_bytes >= COLUMNS_FROM_BYTES -> (not (segment.size_bytes >= "
                "COLUMNS_FROM_BYTES))",
            )
        },
        **{
            f"log/partition/{change}": "`open_log` alone makes it, and sets the offset before anything reads it"
            for change in (
                "local_log.py __init__ [off by one] 0 -> 1",
                "local_log.py __init__ [off by one] 0 -> 1 (2)",
                "local_log.py __init__ [dropped call] self.end_offset = Offset(0) -> pass",
                "local_log.py __init__ [dropped call] self.recovery_point = Offset(0) -> pass",
                "log_offsets.py __init__ [off by one] 0 -> 1",
                "log_offsets.py __init__ [off by one] 0 -> 1 (2)",
                "log_offsets.py __init__ [dropped call] self.log_start_offset = Offset(0) -> pass",
                "log_offsets.py __init__ [dropped call] self.high_watermark = Offset(0) -> pass",
            )
        },
    }
)


_TALLIES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "broker/group/service.py": frozenset({"_token"}),
        "broker/group/timers.py": frozenset({"_count"}),
        _HERD: frozenset({"_step_count", "turn"}),
        "replication/groups/client/link.py": frozenset({"_count"}),
        "replication/groups/fetching.py": frozenset({"_question"}),
        "replication/groups/hosted_coordinator.py": frozenset({"_shard_count"}),
        "replication/groups/member.py": frozenset({"session", "_number"}),
        "replication/groups/shard.py": frozenset({"_ticket"}),
        "replication/roles/leader.py": frozenset({"_attempts"}),
        "replication/roles/replica_log.py": frozenset({"version", "cleaning_count"}),
    }
)
"""Attributes whose numbers are only compared with former ones of the same tally, by module: they only have to rise."""


@functools.cache
def _attributes_set(path: str) -> Mapping[int, str]:
    """Return which attribute the statement sets that begins on each line of a module."""
    found = {}
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=name)]) | ast.AugAssign(ast.Attribute(attr=name), ast.Add()):
                found[node.lineno] = name
    return found


def _is_of_tally(mutant: Mutant) -> bool:
    names = _TALLIES.get(mutant.path, frozenset())
    return mutant.operator == "off by one" and bool(names) and _attributes_set(mutant.path).get(mutant.line) in names


def _is_of_timer(mutant: Mutant) -> bool:
    """Return whether a mutant swaps the time and the delay of a timer."""
    if mutant.operator != "swapped arguments" or not mutant.before.startswith("self._timers.set("):
        return False
    before, after = (ast.parse(text, mode="eval").body for text in (mutant.before, mutant.after))
    assert isinstance(before, ast.Call)
    assert isinstance(after, ast.Call)
    kept = [ast.unparse(each) for each in (before.args[0], before.args[3])]
    return kept == [ast.unparse(each) for each in (after.args[0], after.args[3])]


def reason_of(mutant: Mutant) -> str | None:
    """Return why a mutant changes nothing that could be observed; None for any other."""
    is_symmetric = mutant.operator == "swapped arguments" and mutant.before.startswith(("min(", "max("))
    if is_symmetric and "key=" not in mutant.before:
        return "of numbers the least, or the greatest, is the same in any order"
    if _is_of_timer(mutant):
        return "a timer is due at the sum of its time and its delay"
    if _is_of_tally(mutant):
        return "the numbers of a tally only tell one from another, and rise all the same"
    return EQUIVALENT.get(mutant.name)
