"""List the equivalent mutants of rules and roles, each with the reason.

What it decides: nothing beside `equivalents`, which reads the list and says what belongs in it.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ROLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "replication/rules/fetch.py answer_fetch [dropped branch] is_of_latest and request.offset <= "
        "log.end_offset -> False": (
            "the branch spares nearly every fetch the look-up, which finds that the logs do not part"
        ),
        "replication/rules/election.py elect [dropped operand] ballot.leader != NO_LEADER and "
        "ballot.is_valid(ballot.leader) -> (ballot.is_valid(ballot.leader))": (
            "no leader is no broker, and is in no ISR and no ELR"
        ),
        "replication/roles/follower.py _is_awaited [swapped arguments] may_apply(self._sent_offset, "
        "self.log.state.end_offset, parked=self.replica_role is _PARKED) -> may_apply(self.log.state.end_offset, "
        "self._sent_offset, parked=self.replica_role is _PARKED)": "the two offsets are only compared for being equal",
        "replication/rules/truncation.py answer_epoch_end [comparison] believed < role.leader_epoch -> "
        "(believed <= role.leader_epoch)": ("only epochs that differ come to the comparison"),
        "replication/rules/fetch.py check_leader_epoch [comparison] leader_epoch < role.leader_epoch -> "
        "(leader_epoch <= role.leader_epoch)": ("only epochs that differ come to the comparison"),
        "replication/rules/isr.py is_eligible [dropped operand] status is None or status.fenced or "
        "follower.broker_epoch is None -> (status is None or status.fenced)": (
            "an epoch that is None is neither -1 nor that of the broker"
        ),
        "replication/roles/replica_log.py start_anew [dropped call] "
        "self.set_high_watermark(after.high_watermark) -> pass": (
            "a log without records has one possible high watermark, and truncating it sets that"
        ),
        "replication/roles/follower.py __init__ [dropped call] self._sent_offset = UNKNOWN_OFFSET -> pass": (
            "no answer bears the number of a request before the first, which sets it"
        ),
        "replication/roles/follower.py __init__ [dropped call] self.replica_role = ReplicaRole.NONE -> pass": (
            "`BrokerRole`, the only one that makes followers, states the role at once"
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
        "replication/roles/broker_role.py append [off by one] 0 -> 1": "nobody reads the number of a refused append",
        "replication/roles/broker_role.py _follow [dropped call] role.replica_role = was -> pass": (
            "as a broker begins to follow, the table leads to the same state from wherever it was"
        ),
        'replication/roles/replica_log.py __init__ [dropped call] self._read = b"" -> pass': (
            "the first read keeps its bytes before anybody looks at those of a former one"
        ),
        "replication/roles/states/partition_status.py check_change [dropped branch] before is not None -> False": (
            "`move_input` names the event by both states, so that the table of moves has it and leads to the second"
        ),
        "replication/rules/fetch.py answer_fetch [comparison] request.offset <= log.end_offset -> "
        "(request.offset < log.end_offset)": "at the log's end the look-up finds that the logs do not part",
        "replication/rules/epochs.py assigned [comparison] epochs[-1].start_offset <= start_offset -> "
        "(epochs[-1].start_offset < start_offset)": (
            "an epoch that starts at the offset already is dropped, and assigned there again"
        ),
        **dict.fromkeys(
            (
                "replication/roles/broker_role.py __init__ [off by one] 0 -> 1 (2)",
                "replication/roles/follower.py __init__ [off by one] 0 -> 1",
                "replication/roles/follower.py _ask [off by one] 1 -> 2",
                "replication/roles/follower.py _on_error [off by one] 1 -> 2",
            ),
            "the numbers only name appends and requests, and rise all the same",
        ),
        **dict.fromkeys(
            (
                "replication/roles/replica_log.py __init__ [off by one] 0 -> 1",
                "replication/roles/replica_log.py __init__ [off by one] 1 -> 2",
            ),
            "no log has the version before 0, of which nothing was appended at any offset",
        ),
        **dict.fromkeys(
            (
                (
                    "replication/rules/isr.py maximal_isr [comparison] len(proposed) > len(leader.isr) -> "
                    "(len(proposed) >= len(leader.isr))"
                ),
                (
                    "replication/rules/isr.py maximal_isr [comparison] len(proposed) < len(leader.isr) -> "
                    "(len(proposed) <= len(leader.isr))"
                ),
            ),
            "a request under way adds a member to the ISR that is confirmed, or removes some of it",
        ),
        **dict.fromkeys(
            (
                (
                    "replication/roles/replica_log.py append_as_leader [dropped call] self._appended = "
                    "Appended(info.first_offset, self.version, bytes(segment.records.view()[position:])) -> pass"
                ),
                (
                    "replication/roles/replica_log.py append_as_leader [dropped branch] segment is "
                    "self.log.active_segment -> False"
                ),
                (
                    "replication/roles/replica_log.py append_as_leader [comparison] segment is "
                    "self.log.active_segment -> (segment is not self.log.active_segment)"
                ),
                (
                    "replication/roles/replica_log.py append_as_leader [negated condition] segment is "
                    "self.log.active_segment -> (not (segment is self.log.active_segment))"
                ),
                (
                    "replication/roles/replica_log.py read [dropped branch] appended.is_at(offset, self.version) and "
                    "0 < len(appended.records) <= bytes_max -> False"
                ),
            ),
            (
                "only speed: the batch that was appended last is read from the file instead, and of one for which "
                "the log was rolled nothing is kept"
            ),
        ),
    }
)
