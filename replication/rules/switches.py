"""Define the fixes of Kafka's replication as named switches, and the rules of each release since 0.10.2.

A `Rules` is frozen and hashable; decision functions read its fields and nothing else of a release. What is a
configuration in Kafka (min.insync.replicas, unclean.leader.election.enable, replica.lag.time.max.ms) is an argument of
the functions and not a switch; `ReleaseDefaults` holds the two defaults that changed over time.

Example: Kafka 2.0.0 truncates by KIP-279, and lets a replica join the ISR that has not reached the leader's epoch.

>>> rules_of("2.0").truncation.name, rules_of("2.0").isr_join_epoch_start
('BY_COMMON_EPOCH', False)
>>> without(CURRENT, "strict_min_isr").strict_min_isr
False
>>> SWITCHES["strict_min_isr"].since, SWITCHES["strict_min_isr"].source
('3.7', 'KAFKA-15583')

Source: the KIPs and issues named by each switch; the release numbers were read in Kafka's tagged sources (core
Partition.scala, AbstractFetcherThread.scala, ReplicaManager.scala; metadata org.apache.kafka.controller). Of 4.3,
Partition, DelayedFetch and PartitionChangeBuilder of 4.3.1 were compared with those of 4.1.2.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from broker.errors import UsageError
from broker.releases import KNOWN, Release
from broker.units import DurationMs
from broker.values import changed_repr


class Truncation(enum.Enum):
    """Name the ways in which a follower finds out how much of its log it must truncate."""

    TO_HIGH_WATERMARK = "hw"
    """Truncate to its own high watermark as it becomes a follower (until 0.10.2)."""

    BY_LEADER_EPOCH = "kip101"
    """Ask the leader once where the follower's latest epoch ends (0.11, KIP-101)."""

    BY_COMMON_EPOCH = "kip279"
    """Ask again until leader and follower name an epoch that both know (2.0, KIP-279)."""

    ON_FETCH = "onfetch"
    """Ask nothing beforehand: the answer to a fetch says where the logs diverge (2.8, KAFKA-10554)."""


@attrs.frozen
class Switch:
    """Describe one switch: the first release x.y.0 with the fix, its source, and the behaviour without the fix."""

    since: str
    source: str
    without: str


SWITCH_METADATA: Final = "switch"


def _rule(since: str, source: str, without: str, *, default: bool = True) -> Any:
    return attrs.field(default=default, metadata={SWITCH_METADATA: Switch(since, source, without)})


BEFORE_ALL: Final = "0.8"
"""The release of a rule that every release has."""

NEVER: Final = "never"
"""The release of a rule that no release has, up to `NEWEST`; it is off in `CURRENT`."""


@attrs.frozen(kw_only=True, repr=False)
class Rules:
    """Choose the rules of one release; the default is the newest, `NEWEST`.

    `truncation` is a mode with four values; all others are switches, described in `SWITCHES`.
    """

    truncation: Truncation = Truncation.ON_FETCH

    # The follower's log.
    fetch_epoch_check: bool = _rule(
        "2.1", "KIP-320, KAFKA-7395", "a leader serves followers that believe in another epoch"
    )
    truncation_epoch_check: bool = _rule(
        "2.1", "KIP-320", "a follower truncates by the answer of a leader of another epoch"
    )
    epoch_cached_on_election: bool = _rule(
        "2.1", "KAFKA-7415", "a leader without records does not know where its epoch starts, and cannot answer"
    )
    epoch_cache_always_trimmed: bool = _rule(
        "2.7", "KAFKA-10706", "epochs without records stay in a follower's cache and it truncates for ever"
    )
    diverging_below_start_refused: bool = _rule(
        "3.0", "KAFKA-12996", "a fetch below the log's start is told to truncate instead of starting anew"
    )
    diverging_fetch_ignored: bool = _rule(
        "3.0", "KAFKA-13141", "the leader counts the end of a log that differs from its own"
    )
    truncate_before_high_watermark: bool = _rule(
        "3.5", "KAFKA-14704", "a follower raises its high watermark over records that it is about to drop"
    )
    high_watermark_follows_full_truncation: bool = _rule(
        "2.5", "KAFKA-9491", "after starting anew at another offset the high watermark lies outside the log"
    )
    topic_id_check: bool = _rule(
        "3.1", "KIP-516, KAFKA-14190", "a follower copies records of a topic deleted and created anew"
    )

    # In and out of the ISR.
    caught_up_at_end_offset: bool = _rule(
        "2.1", "KAFKA-7152", "a follower of an idle partition that has everything is dropped for its silence"
    )
    isr_join_epoch_start: bool = _rule(
        "2.1", "KAFKA-7128", "a replica joins the ISR without the records that the last leader committed"
    )
    isr_join_epoch_check: bool = _rule(
        "2.1", "KIP-320", "a follower that has not acknowledged the leader's epoch joins the ISR"
    )
    isr_join_eligibility: bool = _rule(
        "3.3", "KIP-841", "a fenced or stopping broker is put back into the ISR that it was just taken from"
    )
    isr_join_broker_epoch: bool = _rule(
        "3.5", "KIP-903", "a broker that came back empty joins the ISR for what it held before"
    )
    isr_join_caught_up_under_min_isr: bool = _rule(
        NEVER, "KAFKA-19996", "under min ISR a slow follower joins and is dropped in turn for ever", default=False
    )

    # The high watermark.
    high_watermark_epoch_check: bool = _rule(
        "2.1", "KIP-320", "followers of an older epoch count, and truncate afterwards"
    )
    maximal_isr: bool = _rule("2.7", "KIP-497", "the leader commits on an ISR that the controller has not agreed to")
    high_watermark_ignores_ineligible: bool = _rule(
        "3.6", "KAFKA-15021", "a stopping broker outside the ISR holds the high watermark back"
    )
    strict_min_isr: bool = _rule(
        "3.7", "KAFKA-15583", "records are committed and shown by fewer replicas than min.insync.replicas"
    )
    effective_min_isr: bool = _rule(
        "3.7", "KAFKA-15583", "min.insync.replicas above the number of replicas stops a partition for good"
    )
    offset_not_available: bool = _rule(
        "2.2", "KIP-207", "a new leader tells clients an end of the log that goes backwards"
    )
    follower_reads: bool = _rule("2.4", "KIP-392", "consumers read from the leader only")
    new_high_watermark_waits: bool = _rule(
        "2.6",
        "KAFKA-9731",
        "an idle follower's fetch is answered at once, in 2.4 and 2.5, if the high watermark is new",
    )
    fenced_never_preferred: bool = _rule("3.7", "KAFKA-15390", "consumers are sent to a fenced broker")

    # The controller.
    isr_write_epoch_check: bool = _rule(
        BEFORE_ALL, "AlterPartitionRequest, and LeaderAndIsr in ZooKeeper before", "a deposed leader changes the ISR"
    )
    isr_write_ahead_refused: bool = _rule(
        "3.3", "KAFKA-14154", "a controller that was replaced answers a leader that knows more than it"
    )
    control_request_broker_epoch: bool = _rule(
        "2.2", "KIP-380, KAFKA-7235", "a restarted broker obeys a request that was meant for its former incarnation"
    )
    fenced_broker_has_session: bool = _rule(
        "4.0", "KAFKA-17793", "a fenced broker that sends heartbeats is replaced by a second process with its id"
    )
    known_state_keeps_request: bool = _rule(
        NEVER,
        "Partition.makeLeader",
        "metadata that a leader knows already drops its request for a joining follower, which is then not counted",
        default=False,
    )
    leader_recovery_state: bool = _rule(
        "3.2", "KIP-704", "after an unclean election the ISR grows before the leader has recovered"
    )
    isr_shrink_keeps_leader_epoch: bool = _rule(
        "3.6", "KAFKA-15021", "every shrink of the ISR starts a new leader epoch and interrupts the followers"
    )
    fence_one_at_a_time: bool = _rule(
        "3.0", "KAFKA-13173", "of two brokers fenced together, one stays in the ISR or leads"
    )
    reassignment_needs_all_targets: bool = _rule(
        "3.8", "KAFKA-15665", "a reassignment ends while kept replicas are out of sync"
    )
    reassignment_ignores_kept: bool = _rule(
        "4.3", "KAFKA-19975", "a reassignment never ends while a replica that it neither adds nor removes is unhealthy"
    )
    elr: bool = _rule(
        "4.1", "KIP-966", "when the ISR has shrunk to one, only that one may lead, with or without its records"
    )
    elr_excludes_unclean: bool = _rule("4.0", "KIP-966", "a broker that lost the end of its log is elected as eligible")
    elr_holds_replicas_only: bool = _rule(
        NEVER,
        "PartitionChangeBuilder.maybePopulateTargetElr",
        "a replica that a reassignment removed stays eligible, also when it comes back empty",
        default=False,
    )
    elr_kept_by_every_change: bool = _rule(
        "4.3", "Kafka pull request 20716", "a change of directories forgets who was eligible"
    )
    last_known_leader_alive: bool = _rule(
        "4.1", "KAFKA-19522", "a dead broker is made leader because it was the last one"
    )
    clean_marker_removed_first: bool = _rule(
        "2.8", "KAFKA-10471, KAFKA-15375", "a crash while starting passes for a clean stop at the next start"
    )

    def __repr__(self) -> str:
        return changed_repr(self)


CURRENT: Final = Rules()
"""The rules of the newest release, `NEWEST`."""


def sound(rules: Rules) -> Rules:
    """Return `rules` without the weaknesses that no release has fixed, and that break invariants (S99, S100)."""
    return attrs.evolve(rules, elr_holds_replicas_only=True, known_state_keeps_request=True)


SOUND: Final = sound(CURRENT)
"""The rules that random runs play."""

SWITCHES: Final[Mapping[str, Switch]] = MappingProxyType(
    {field.name: field.metadata[SWITCH_METADATA] for field in attrs.fields(Rules) if SWITCH_METADATA in field.metadata}
)
"""Every switch of `Rules` by name, in the order of its fields."""


@attrs.frozen
class ReleaseDefaults:
    """The rules of one release of Kafka, and the two configuration defaults that changed over time."""

    release: Release
    rules: Rules
    lag_ms_max: DurationMs
    unclean_election: bool


_TRUNCATIONS: Final = (
    (Release("2.8"), Truncation.ON_FETCH),
    (Release("2.0"), Truncation.BY_COMMON_EPOCH),
    (Release("0.11"), Truncation.BY_LEADER_EPOCH),
    (Release("0.10.2"), Truncation.TO_HIGH_WATERMARK),
)


def _has(release: Release, since: str) -> bool:
    # isr_write_epoch_check is older than the first release that has a name here.
    return since != NEVER and (since == BEFORE_ALL or Release(since) <= release)


def _defaults(release: Release) -> ReleaseDefaults:
    on = {key: _has(release, switch.since) for key, switch in SWITCHES.items()}
    truncation = next(mode for since, mode in _TRUNCATIONS if since <= release)
    return ReleaseDefaults(
        release=release,
        rules=Rules(truncation=truncation, **on),
        # KIP-537 trebled the lag that is allowed; KIP-106 turned unclean election off.
        lag_ms_max=DurationMs(30_000 if release >= Release("2.5") else 10_000),
        unclean_election=release < Release("0.11"),
    )


RELEASES: Final[Mapping[str, ReleaseDefaults]] = MappingProxyType({name: _defaults(Release(name)) for name in KNOWN})
"""The rules and defaults of the releases by name, oldest first."""


def rules_of(release: Release | str) -> Rules:
    """Return the rules of a release such as "2.0", the newest for "current"; raise UsageError for any other name."""
    if release == "current":
        return CURRENT
    return RELEASES[(release if isinstance(release, Release) else Release(release)).name].rules


def without(rules: Rules, *names: str) -> Rules:
    """Return `rules` with the named switches off; raise UsageError for a name that is no switch."""
    for name in names:
        if name not in SWITCHES:
            raise UsageError(f"rule {name!r} is not known; allowed are {', '.join(SWITCHES)}")
    off: dict[str, Any] = dict.fromkeys(names, False)
    return attrs.evolve(rules, **off)
