"""Scenarios of ISR changes: bugs fixed in Kafka, and an open one (S100)."""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from replication.scenarios.catalogue.common import (
    ALONE,
    LOSS,
    PAIR,
    QUICK_LAG,
    QUIET_TRIO,
    fault,
    reassign_and_elect,
    settings_without,
)
from replication.scenarios.operations import Crash, HoldMessages, SendRecord
from replication.scenarios.result import ExpectedResponses
from replication.scenarios.scenario import DEFAULT_ROLE_SETTINGS, ExpectedState, no_response
from replication.simulation import FaultKind

_S100: Final = attrs.evolve(
    PAIR,
    name="S100",
    title="Metadata that the leader knows already drops its request for a joining follower",
    how="The answer to its own request tells leader 0 that it is alone in sync. It asks to add 1, and only then reads "
    "the metadata of the first change, which drops what it asks for. The controller adds 1; 0 does not hear of it, "
    "and commits alone once 1 lags. When 0 dies, 1 is elected cleanly. No disk has failed.",
    source="Kafka core Partition.makeLeader, 4.3.1, which skips older partition epochs only (KAFKA-13790)",
    settings=attrs.evolve(ALONE, lag_ms_max=QUICK_LAG),
    operations=(
        SendRecord(5_000, 0),
        HoldMessages(5_500, 9_000, "FetchResponse", receiver=1),
        HoldMessages(5_500, 9_300, "MetadataFetchResponse", receiver=0),
        SendRecord(5_600, 0),
        HoldMessages(8_900, 9_500, "AlterPartition", sender=0),
        SendRecord(9_100, 0),
        HoldMessages(9_105, 60_000, "Fetch", sender=1),
        HoldMessages(9_310, 60_000, "MetadataFetchResponse", receiver=0),
        SendRecord(11_000, 0),
        Crash(12_000, 0, 40_000),
    ),
    expected_states=(
        ExpectedState(9_000, leader=0, isr=(0,)),
        ExpectedState(11_500, leader=0, isr=(0, 1), logs=((0, 1, 2, 3), (0, 1, 2)), high_watermarks=(4, 2)),
        ExpectedState(30_000, leader=1, isr=(1,)),
    ),
    breaks=LOSS - {"I4", "I16"},
    lost_values=(3,),
)

ISR_CHANGES: Final = (
    attrs.evolve(
        QUIET_TRIO,
        name="S06-before",
        title="Empty follower joins the ISR of a new leader and loses a committed record",
        how="Brokers 0 and 2 hold the committed m0, and 2 becomes leader before it knows that m0 is committed. Broker "
        "1 comes back empty. To have the high watermark of 2 is enough to join: 1 is in the ISR without m0, and "
        "is elected when 2 dies. By the fix it needs the start offset of the leader's epoch.",
        source="KAFKA-7128",
        operations=(
            Crash(4_000, 1, 14_300),
            SendRecord(14_000, 0),
            HoldMessages(14_040, 40_000, "Fetch", sender=0),
            HoldMessages(14_040, 40_000, "FetchResponse", receiver=1),
            HoldMessages(14_290, 14_600, "Fetch", sender=1, count_max=1),
            *reassign_and_elect(14_050, 2, 1, 0),
            Crash(15_000, 2, 45_000),
        ),
        expected_states=(
            ExpectedState(14_040, leader=0, isr=(0, 2), logs=((0,), (), (0,)), high_watermarks=(1, 0, 0)),
            ExpectedState(14_900, leader=2, isr=(0, 2, 1)),
            ExpectedState(30_000, leader=1),
        ),
        lost_values=(0,),
        settings=settings_without("isr_join_epoch_start"),
        breaks=frozenset({"I6", "I7", "I9", "I16"}),
    ),
    attrs.evolve(
        QUIET_TRIO,
        name="S10-before",
        title="Leader ignores a joining follower and a committed record is lost",
        how="Leader 0 asks to add 1 to the ISR, and commits with 2 alone while the request is on its way; the "
        "controller adds 1, 0 dies, and 1 is elected without m0. No disk has failed.",
        source="KIP-497; Vanlightly/kafka-tlaplus, section 6.5.2",
        settings=settings_without("maximal_isr", lag_ms_max=QUICK_LAG),
        operations=(
            Crash(4_000, 1, 15_000),
            HoldMessages(14_000, 17_100, "AlterPartition", sender=0),
            HoldMessages(15_600, 40_000, "FetchResponse", receiver=1),
            SendRecord(16_700, 0),
            Crash(17_300, 0, 45_000),
        ),
        expected_states=(
            ExpectedState(17_000, leader=0, isr=(0, 2), high_watermarks=(1, 0, 0)),
            ExpectedState(17_250, leader=0, isr=(0, 2, 1)),
            ExpectedState(30_000, leader=1),
        ),
        expected_responses=(ExpectedResponses("ProduceResponse"),),
        lost_values=(0,),
        breaks=frozenset({"I4", "I5", "I6", "I7", "I9", "I16"}),
    ),
    attrs.evolve(
        QUIET_TRIO,
        name="S11-before",
        title="Restarted replica joins the ISR with an empty log and a committed record is lost",
        how="Leader 0 asks to add 1, which has every record; before the request arrives, 1 loses its disk and "
        "registers again. Without broker epochs in AlterPartition 1 joins the ISR with an empty log and is "
        "elected.",
        source="KIP-903, KAFKA-14617",
        role_settings=DEFAULT_ROLE_SETTINGS,
        plan=(fault(17_500, FaultKind.WIPE, 1, 500),),
        operations=(
            SendRecord(5_000, 0),
            Crash(6_000, 1, 16_000),
            HoldMessages(15_500, 27_500, "AlterPartition", sender=0),
            HoldMessages(17_600, 60_000, "FetchResponse", receiver=1),
            Crash(28_500, 0, 55_000),
        ),
        expected_states=(
            ExpectedState(27_000, leader=0, isr=(0, 2), logs=((0,), (), (0,))),
            ExpectedState(28_000, leader=0, isr=(0, 2, 1)),
            ExpectedState(45_000, leader=1),
        ),
        expected_responses=(no_response("AlterPartitionResponse", ErrorCode.INELIGIBLE_REPLICA),),
        lost_values=(0,),
        settings=settings_without("isr_join_broker_epoch"),
        breaks=frozenset({"I5", "I6", "I7", "I9", "I16"}),
    ),
    _S100,
    attrs.evolve(
        QUIET_TRIO,
        name="S12-before",
        title="Fenced replica joins the ISR and writes time out",
        how="Leader 0 asks to add 1; 1 dies and is fenced before the request arrives. The controller adds 1 all the "
        "same, which holds the high watermark back: acks=all times out.",
        source="KIP-841",
        operations=(
            Crash(6_000, 1, 16_000),
            HoldMessages(15_500, 28_000, "AlterPartition", sender=0),
            Crash(17_000, 1, 50_000),
            SendRecord(28_500, 0),
        ),
        expected_states=(
            ExpectedState(27_900, leader=0, isr=(0, 2)),
            ExpectedState(28_400, leader=0, isr=(0, 2, 1)),
        ),
        expected_responses=(
            no_response("AlterPartitionResponse", ErrorCode.INELIGIBLE_REPLICA),
            ExpectedResponses("ProduceResponse", ErrorCode.REQUEST_TIMED_OUT),
        ),
        lost_values=(),
        settings=settings_without("isr_join_eligibility", "isr_join_broker_epoch"),
        breaks=frozenset({"I2"}),
    ),
)
