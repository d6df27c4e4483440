"""List the equivalent mutants of the group coordinator, each with the reason.

What it decides: nothing beside `equivalents`, which reads the list and says what belongs in it.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

COORDINATORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                (
                    "broker/group/zookeeper/herd.py _tell [dropped operand] consumer.is_alive and not "
                    "consumer.has_failed -> (consumer.is_alive)"
                ),
                (
                    "broker/group/zookeeper/herd.py _tell [dropped operand] consumer.is_alive and not "
                    "consumer.has_failed -> (not consumer.has_failed)"
                ),
            ),
            ("who is dead or has failed is woken in vain: `_wake` looks at the same, and only another delay is drawn"),
        ),
        "broker/group/zookeeper/herd.py _is_claimed [dropped branch] refused.code is not ZnodeCode.NODE_EXISTS "
        "-> False": (
            "the folder of the owner nodes is there from the beginning, so that nothing else refuses a new one"
        ),
        'broker/group/classic/group.py stored [dropped operand] record.protocol_name or "" -> (record.protocol_name)': (
            "a record that has members names the protocol that their group chose"
        ),
        "broker/group/classic/coordinator.py _add [dropped operand] group.state is "
        "GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY -> (group.previous_state is "
        "GroupState.EMPTY)": ("no other state than this one follows upon an empty group that is still there"),
        "broker/group/consumer/records.py _removed [dropped operand] version == CURRENT and name in "
        "group.members -> (name in group.members)": (
            "of the keys that are left only that of a member's assignment has a name"
        ),
        **dict.fromkeys(
            (
                "broker/group/service.py __init__ [off by one] 0 -> 1 (2)",
                "broker/group/service.py _apply [dropped call] self._end_offset += 1 -> pass",
                "broker/group/service.py _apply [off by one] 1 -> 2",
            ),
            "only the end of a transaction compares the places of records, and a service knows no transactions",
        ),
        **dict.fromkeys(
            (
                "broker/group/consumer/records.py _read_member [dropped branch] instance_id is None -> False",
                "broker/group/records.py read_group [dropped branch] leader_id is None -> False",
                "broker/group/records.py _read_member [dropped branch] instance_id is None -> False",
            ),
            "a NewType gives back what it is given, None too",
        ),
        "broker/group/consumer/records.py _read_topics [off by one] 1 -> 2": (
            "a partition takes six bytes at least: a claim of more than half of what is left is refused at the latest "
            "when they are read"
        ),
        "broker/group/offsets.py end_transaction [comparison] stored.at > present.at -> (stored.at >= present.at)": (
            "no two records have one place in a log"
        ),
    }
)
