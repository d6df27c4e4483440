"""List the invariants by name: statement, moment of the check, and known causes of violations.

"step" is after every event, "second" every simulated second, "end" at the end of the run. `may_break` names the events
after which a violation is no fault of the rules: U is an unclean election, the election of the last known leader, or
the loss of records on min.insync.replicas replicas at one time.

Source: I1, I4, I5 hachikuji/kafka-specification (2020-01); I6 to I9, I11, I23, I25 Vanlightly/kafka-tlaplus (2025-01);
I14 Kafka's RaftEventSimulationTest; I17, I20, I22 Jepsen's Kafka workload; the others ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from broker.units import TimeMs


@attrs.frozen
class Invariant:
    """Describe one invariant: its name, its statement, the moment of its check, and the known causes of violations."""

    name: str
    statement: str
    when: str = "step"
    may_break: str = ""


_U: Final = "U"

INVARIANTS: Final[Mapping[str, Invariant]] = MappingProxyType(
    {
        "I1": Invariant("leader in ISR", "a leader is in the ISR"),
        "I2": Invariant(
            "shape of ISR and ELR",
            "ISR and ELR are apart, of replicas, without doubles; no ELR with min.insync.replicas in sync; none "
            "fenced; a failed directory counts as failed until its broker registers anew",
            may_break="without ELR the last member of an ISR may be fenced",
        ),
        "I3": Invariant(
            "epochs rise",
            "no epoch falls; one change one partition epoch; one leader a leader epoch; a new one as a replica goes",
        ),
        "I4": Invariant(
            "weak ISR",
            "what a leader shows is the same on every member of the ISR that it knows",
            may_break="U; truncation to the high watermark, by KIP-101, by KIP-279",
        ),
        "I5": Invariant(
            "strong ISR",
            "what any leader shows is the same on every member of the controller's ISR",
            may_break="U; truncation to the high watermark, by KIP-101, by KIP-279",
        ),
        "I6": Invariant("candidates complete", "who may be elected cleanly holds all that is committed", may_break=_U),
        "I7": Invariant("leader complete", "the leader holds all that is committed", may_break=_U),
        "I8": Invariant(
            "superset of quorums",
            "the maximal ISR holds the controller's ISR and ELR",
            may_break="without the maximal ISR",
        ),
        "I9": Invariant("nothing lost everywhere", "what was acknowledged is on some broker", "end", _U),
        "I10": Invariant("bound of durability", "what was acknowledged can be read at the end", "end", _U),
        "I11": Invariant("logs match", "the same offset and leader epoch is the same record after the same log"),
        "I12": Invariant("epoch cache", "the cache holds the first offset of each epoch of the log, which stays"),
        "I13": Invariant(
            "bounds",
            "log start <= last stable offset <= high watermark <= log end; recovery point <= log end; the "
            "producers are known up to the log end",
        ),
        "I14": Invariant("high watermarks rise", "a leader's high watermark never falls within an epoch", may_break=_U),
        "I15": Invariant(
            "frozen under min ISR",
            "with too small an ISR the high watermark stands still",
            may_break="before 3.7",
        ),
        "I16": Invariant("safe truncation", "a member of ISR or ELR cuts nothing that is committed", may_break=_U),
        "I17": Invariant("consistent reads", "what was seen at an offset never changes", may_break=_U),
        "I18": Invariant(
            "nothing uncommitted shown",
            "a consumer sees only what is committed",
            may_break="U; before KAFKA-14704",
        ),
        "I19": Invariant("acknowledged is committed", "acks=all is answered when the record is committed"),
        "I20": Invariant("failed is absent", "what certainly failed is in no log", "end"),
        "I21": Invariant(
            "idempotence",
            "a log has a producer's sequences once and in order, and knows the last; what follows it is not refused",
        ),
        "I22": Invariant("real-time order", "what was sent after an answer has a greater offset", "end", _U),
        "I23": Invariant("metadata prefix", "each broker's metadata is a prefix of the controller's"),
        "I24": Invariant(
            "fenced is inert",
            "requests of a former incarnation or epoch are refused and change nothing, and no others are refused so",
        ),
        "I25": Invariant(
            "unclean is out",
            "who stopped uncleanly is in no ISR and no ELR until it has caught up",
            may_break="without ELR the last member stays",
        ),
        "I26": Invariant("safe reassignment", "the ISR grows at the leader's request only; the leader is a replica"),
        "I27": Invariant(
            "one change under way",
            "a leader has one request of its present epochs under way at most, adds who has just fetched, and makes of "
            "the answer what it says",
        ),
        "I28": Invariant(
            "elections are allowed",
            "a leader from outside ISR and ELR is the last known one, by the setting, or by an UNCLEAN ElectLeaders; "
            "and no member could lead; no leader in a failed directory is elected; who led last is noted until another "
            "leads",
        ),
        "I29": Invariant(
            "counted members hold",
            "as a high watermark rises, each member of the leader's maximal ISR holds what is below it, alive or not",
            may_break="truncation to the high watermark, by KIP-101, by KIP-279; before KIP-320",
        ),
        "I30": Invariant(
            "answers are founded",
            "a fetch or a write is refused for what the replica's role, epochs and bounds give as a reason, and then "
            "always",
        ),
        "I31": Invariant(
            "the ELR is whole",
            "who leaves the ISR while it is smaller than min.insync.replicas is in the ELR, and nobody else, until it "
            "is in sync, restarts uncleanly or is no replica, or an unclean leader is elected",
        ),
        "I32": Invariant(
            "cancelled moves are undone",
            "a cancelled reassignment leaves the replicas that there were before it, and those of them in the ISR that "
            "were in sync",
        ),
        "I33": Invariant(
            "followers obey",
            "an answer makes a follower's log end and its high watermark what it says, and nothing else cuts the log",
        ),
        "I34": Invariant(
            "restarts keep what was written",
            "a log opened again ends where it did, less what a power loss took above the recovery point; its start, "
            "high watermark and recovery point are as they were written",
        ),
        "I35": Invariant(
            "sessions",
            "who was not heard for broker.session.timeout.ms is fenced, and another process gets its id, no sooner; "
            "who is unfenced has read its registration; who stops is taken for no leader",
            may_break="ZooKeeper mode",
        ),
        "H1": Invariant("reads go on", "a consumer sees offsets in order and none twice", "end", _U),
        "H2": Invariant(
            "one value one offset",
            "a value is seen at one offset of one partition",
            "end",
            may_break="retention deletes a record and the leader restarts uncleanly before its producer sends it again",
        ),
        "H3": Invariant("nothing skipped", "a consumer sees every offset up to the last that it saw", "end", _U),
        "K1": Invariant("expired was committed", "no log begins behind what is committed"),
        "K2": Invariant("starts have reasons", "only retention, an order or the leader's word raises a log's start"),
        "K3": Invariant("starts are taken over", "a follower's log begins where its leader's does, or later"),
        "K4": Invariant("deleted is answered", "an order to delete is answered when it holds on all live replicas"),
        "K5": Invariant(
            "last of each key", "compaction takes no committed record that is the last of its key", may_break=_U
        ),
        "K6": Invariant("kept as written", "what compaction keeps has its offset, value and epoch, and its order"),
        "K7": Invariant(
            "tombstones are seen",
            "a tombstone stays for delete.retention.ms after the compaction that first met it, unless clocks jump",
        ),
        "K8": Invariant("keys go on", "a consumer never sees an older record of a key than before", "end", _U),
        "K9": Invariant(
            "retention is founded",
            "what retention deletes is older than retention.ms or beyond retention.bytes; it leaves no such segment",
        ),
        "L": Invariant("whole again", "once faults are over the cluster becomes whole (L1 to L9)", "end"),
        "L10": Invariant(
            "writes go on",
            "once faults are over each producer has a new write of each partition acknowledged by all",
            "end",
        ),
        "L11": Invariant("high watermarks arrive", "once faults are over each high watermark is its log's end", "end"),
        "L12": Invariant(
            "consumers arrive", "once faults are over each consumer reads up to the high watermark", "end"
        ),
        "L13": Invariant("shutdowns end", "once faults are over a controlled shutdown ends", "end"),
        "L14": Invariant(
            "orders take effect",
            "a preferred replica in the ISR leads after a preferred election; at the end replicas are as last ordered, "
            "and a deleted topic has no log",
            may_break="ZooKeeper mode",
        ),
        "L15": Invariant(
            "laggards leave",
            "also under faults, a follower that lags leaves the ISR within 1.5 times replica.lag.time.max.ms and 10 s",
            "second",
            may_break="ZooKeeper mode; while the leader and the controller do not hear each other",
        ),
        "L16": Invariant(
            "writes go on under faults",
            "a leader that hears the controller and its ISR, min.insync.replicas at least, commits in 1.5 times "
            "replica.lag.time.max.ms and 10 s what it has, and takes writes",
            "second",
            may_break="ZooKeeper mode",
        ),
        "X": Invariant("own invariants", "what the caller's own invariants say"),
        "A": Invariant("no bug", "no assertion of the model fails, and it raises nothing else"),
    }
)
"""Every invariant by its code."""

OF_LOSSES: Final = frozenset(
    {
        *("I4", "I5", "I6", "I7", "I9", "I10", "I11", "I12", "I14", "I16", "I17", "I18", "I19", "I22", "I29"),
        *("H1", "H2", "H3", "K1", "K5", "K6", "K8"),
    }
)
"""The invariants that break without ELR once a machine loses records: a member of the ISR leads on without them."""


@attrs.frozen
class Finding:
    """Describe one violation; `code` is a key of `INVARIANTS`, `partition` is -1 for none."""

    code: str
    at_ms: TimeMs
    partition: int
    what: str

    def __str__(self) -> str:
        where = "" if self.partition < 0 else f", partition {self.partition}"
        return f"{self.code} broken at {self.at_ms} ms{where}: {self.what}"
