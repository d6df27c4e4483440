"""Check replicas: each log by itself, each leader's claims, and all replicas of a partition together.

A broker that is down, or whose present incarnation the controller does not know yet, is not checked as a candidate.
After an unclean election, leaders of earlier epochs are not checked. A leader that has not yet learned that a member
was reassigned away is not checked against that member's log, which is deleted; a member that was reassigned back has a
new, empty log.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from broker.ids import BrokerId
from log.storage.checkpoints import EpochEntry
from replication.checkers.observed_log import LogChange, ObservedLog
from replication.checkers.reference_log import ReferenceLog
from replication.checkers.view import CheckedCluster, NodeView, is_known, leader_role
from replication.rules.partition import LeaderState
from replication.rules.settings import PartitionSettings

Broken = tuple[str, str]


def check_log(
    reference: ReferenceLog, node: NodeView, observed: ObservedLog, change: LogChange, agreed_before: int
) -> Iterator[Broken]:
    """Check one log after a change (I12, I13, I16); `agreed_before` is its agreement before it was truncated."""
    yield from check_bounds(reference, node, observed, change, agreed_before)
    cache = observed.log.log.epochs
    if cache is not None and (
        change.is_cut or cache.entries != observed.epochs or _begins_epoch(observed, change.first_offset)
    ):
        yield from _check_epochs(node, observed, cache.entries, observed.read_from)


def check_bounds(
    reference: ReferenceLog, node: NodeView, observed: ObservedLog, change: LogChange, agreed_before: int
) -> Iterator[Broken]:
    """Check the bounds of one log after a change, and the records that a truncation removed (I13, I16)."""
    log = observed.log.log
    if not log.log_start_offset <= log.last_stable_offset <= log.high_watermark <= log.log_end_offset:
        yield "I13", f"broker {node.broker} has the bounds {log}"
    # A flush that was due for a segment since cut off may raise it to where the log once ended, in Kafka too.
    if log.recovery_point > max(log.log_end_offset, observed.end_max):
        yield "I13", f"broker {node.broker} counts {log} as flushed up to {log.recovery_point}"
    if log.active_segment.base_offset > log.log_end_offset:
        yield (
            "I13",
            f"broker {node.broker} has segment {log.active_segment.base_offset} behind the end of {log}",
        )
    if log.producers.map_end_offset != log.log_end_offset:
        yield "I13", f"broker {node.broker} knows the producers of {log} up to {log.producers.map_end_offset}"
    if log.log_start_offset or (log.epochs is not None and log.epochs.entries is not observed.epochs):
        yield from _moved_epochs(observed, change)
    if change.is_cut:
        state = reference.state
        kept = min(observed.agreed, len(observed.entries))
        is_member = state is not None and (node.broker in state.isr or node.broker in state.elr)
        # The first reading of a log is no cut.
        if is_member and kept < min(agreed_before, len(reference.committed)):
            yield "I16", f"broker {node.broker} cut to {kept} what is committed to {len(reference.committed)}"


def _moved_epochs(observed: ObservedLog, change: LogChange) -> Iterator[Broken]:
    """Yield each leader epoch below a truncation whose start offset moved, unless a raised log start moved it."""
    log, before = observed.log.log, observed.epochs
    if log.epochs is None or not log.epochs.entries:
        return
    if log.epochs.entries[0].start_offset < log.log_start_offset:
        yield "I12", f"broker {observed.broker} has epochs {log.epochs.entries} before its start {log.log_start_offset}"
    if change.is_first or log.epochs.entries is before:
        return
    known = {entry.epoch: entry.start_offset for entry in before}
    for entry in log.epochs.entries:
        start = known.get(entry.epoch, entry.start_offset)
        is_raised = start < entry.start_offset == log.log_start_offset
        if start != entry.start_offset and start < change.first_offset and not is_raised:
            yield "I12", f"broker {observed.broker}: epoch {entry.epoch} began at {start}, now at {entry.start_offset}"


def _begins_epoch(observed: ObservedLog, first_new: int) -> bool:
    """Whether any new record is of another leader epoch than the record before the new ones."""
    entries = observed.entries
    if first_new == 0:
        return True
    epoch = entries[first_new - 1].epoch
    return any(entries[place].epoch != epoch for place in range(first_new, len(entries)))


def _check_epochs(
    node: NodeView, observed: ObservedLog, cached: tuple[EpochEntry, ...], log_start: int
) -> Iterator[Broken]:
    entries = observed.entries
    observed.epochs = cached
    starts = [(entry.epoch, entry.start_offset) for entry in cached]
    for (epoch, start), (next_epoch, next_start) in pairwise(starts):
        if epoch >= next_epoch or start >= next_start:
            yield "I12", f"broker {node.broker} has epochs {starts}"
    for epoch, start in starts:
        if start > len(entries):
            yield "I12", f"broker {node.broker} has epochs {starts} past its end {len(entries)}"
        elif log_start <= start < len(entries):
            is_of_epoch = entries[start].epoch == epoch
            is_first = is_of_epoch and (start <= log_start or entries[start - 1].epoch < epoch)
            if not is_first:
                yield "I12", f"broker {node.broker}: epoch {epoch} does not begin at {start}"
    if entries and (not starts or entries[-1].epoch > starts[-1][0]):
        yield "I12", f"broker {node.broker} does not know epoch {entries[-1].epoch} of its last record"


def check_claims(
    reference: ReferenceLog,
    leader: LeaderState,
    observed: ObservedLog,
    settings: PartitionSettings,
) -> Iterator[Broken]:
    """Check a leader's state (I3, I14, I15, I27), and note the high watermark that it shows."""
    broker, epoch = observed.broker, leader.leader_epoch
    first = reference.leaders.setdefault(epoch, broker)
    if first != broker:
        yield "I3", f"brokers {first} and {broker} both lead in epoch {epoch}"
    pending = leader.pending
    if pending is not None and (pending.leader_epoch, pending.partition_epoch) != (epoch, leader.partition_epoch):
        yield "I27", f"broker {broker} waits for an answer to a request of older epochs"
    reference.asked[broker] = pending
    high = observed.high_watermark
    is_first_look = observed.shown_epoch != epoch
    if not is_first_look and observed.shown == high:
        return
    high_before, observed.shown_epoch, observed.shown = observed.shown, epoch, high
    is_under_min = settings.rules.strict_min_isr and len(leader.isr) < min(settings.min_isr, leader.replica_count)
    if is_first_look:
        # A follower's high watermark is never above what a leader has shown, so a new leader begins at most there,
        # unless it was elected uncleanly and has the high watermark of an ended history, or has kept that since.
        known = max(high_before, len(reference.committed), reference.former_end)
        if is_under_min and epoch > reference.clean_from_epoch and high > known:
            shown = f"leader {broker} began with high watermark {high} and ISR {leader.isr}"
            yield "I15", f"{shown}; {len(reference.committed)} records are committed"
    else:
        if high < high_before:
            yield "I14", f"the high watermark of leader {broker} fell from {high_before} to {high}"
        elif is_under_min and observed.has_records(high_before, high):
            # A read moves it over a gap that compaction left (UnifiedLog.fetchHighWatermarkMetadata, 4.3.1).
            yield "I15", f"the high watermark of leader {broker} rose to {high} with ISR {leader.isr}"


def check_members(cluster: CheckedCluster, reference: ReferenceLog, settings: PartitionSettings) -> Iterator[Broken]:
    """Check all replicas of a partition against the reference (I4 to I8). Cost: linear in the replicas."""
    state = reference.state
    if state is None:
        return
    committed = len(reference.committed)
    for broker in (*state.isr, *state.elr):
        observed = reference.observed_logs.get(broker)
        if reference.unsettled is not None and reference.unsettled.leader == broker:
            continue  # What it lacks is known as it first leads.
        # Who agrees with all that is committed is complete, known or not: that is most of the time.
        if observed is None or observed.agreed >= committed or observed.agree(reference.committed) >= committed:
            continue
        if _present(cluster, reference, cluster.nodes[broker]) is not None:
            place = "in sync" if broker in state.isr else "eligible"
            what = f"broker {broker} is {place} and holds {observed.agreed} of {committed} committed records"
            yield ("I7" if broker == state.leader else "I6"), what
    for broker in state.replicas:
        node = cluster.nodes[broker]
        role = leader_role(node, reference.partition)
        if role is None or role.state.leader_epoch < reference.clean_from_epoch:
            continue
        observed = _present(cluster, reference, node)
        if observed is not None:
            yield from _check_shown(cluster, reference, role.state, observed.high_watermark)
        if role.state.leader_epoch == state.leader_epoch:
            yield from check_quorum(reference, role.state, settings)


def _check_shown(cluster: CheckedCluster, reference: ReferenceLog, leader: LeaderState, high: int) -> Iterator[Broken]:
    state = reference.state
    assert state is not None
    shown, own = high, reference.observed_logs[leader.broker]
    for code, members in (("I5", state.isr), ("I4", leader.isr)):
        for broker in members:
            observed = reference.observed_logs.get(broker)
            if observed is None or observed.agreed >= shown or observed.agree(reference.committed) >= shown:
                continue
            held = observed.agreed if shown <= len(reference.committed) else _held_of(reference, own, broker, shown)
            if held >= shown:
                continue
            node = cluster.nodes[broker]
            if code == "I4" and (
                node.lossy_incarnation >= 0 or leader.partition_epoch < reference.moved_away.get(broker, 0)
            ):
                continue
            if _present(cluster, reference, node) is not None:
                yield (
                    code,
                    f"leader {leader.broker} shows {high} records, member {broker} has {held} of them",
                )


def commit(
    cluster: CheckedCluster,
    reference: ReferenceLog,
    leader: LeaderState,
    observed: ObservedLog,
    settings: PartitionSettings,
) -> Iterator[Broken]:
    """Add to the reference what a leader shows and its members' logs hold; what they lack breaks I29.

    A member that is down counts with the log that it had. A member that has lost records, or that was moved away
    without the leader's knowledge, has another log than the one that the leader counted, and is not asked.
    """
    high, committed = observed.high_watermark, reference.committed
    agreed = observed.agree(committed)
    if agreed < min(high, len(committed)):
        if reference.former_end and observed.is_undated:
            return
        yield "I7", f"leader {observed.broker} shows {high} records and agrees with what is committed up to {agreed}"
        return
    if high <= len(committed):
        return
    counts_asked = leader.pending is not None and settings.rules.maximal_isr
    asked = leader.pending.members if leader.pending is not None and counts_asked else ()
    proven = high
    for broker in dict.fromkeys((*leader.isr, *asked)):
        node = cluster.nodes[broker]
        if node.lossy_incarnation >= 0 or leader.partition_epoch < reference.moved_away.get(broker, 0):
            continue
        held = _held_of(reference, observed, broker, high)
        if held < high:
            yield "I29", f"leader {leader.broker} shows {high} records, and counts {broker}, which holds {held}"
            proven = min(proven, held)
    committed.extend(observed.entries[len(committed) : proven])
    observed.agree(committed)


def _held_of(reference: ReferenceLog, leader: ObservedLog, broker: BrokerId, high: int) -> int:
    """Return how many of a leader's first `high` records a broker's log holds. Cost: linear in the new ones."""
    member = reference.observed_logs.get(broker)
    if member is leader:
        return len(leader.entries)
    if member is None:
        return 0
    held, committed = member.agree(reference.committed), len(reference.committed)
    if held < committed:
        return held
    end = min(high, len(member.entries))
    while held < end and (member.entries[held] == leader.entries[held] or member.begins_after(held)):
        held += 1
    return held


def commit_acknowledged(reference: ReferenceLog, observed: ObservedLog, end_offset: int) -> bool:
    """Add to the reference what a leader has acknowledged to a client, whoever else holds it; return whether it grew.

    A leader whose log is another one than the reference adds nothing.
    """
    committed = reference.committed
    before = len(committed)
    if observed.agree(committed) == before:
        committed.extend(observed.entries[before:end_offset])
        observed.agree(committed)
    return len(committed) > before


def check_quorum(reference: ReferenceLog, leader: LeaderState, settings: PartitionSettings) -> Iterator[Broken]:
    """Check that the maximal ISR of a leader of the present epoch holds the controller's ISR and ELR (I8)."""
    state = reference.state
    assert state is not None
    if leader.isr == state.isr and not state.elr:
        return
    if len(leader.isr) < min(settings.min_isr, leader.replica_count):
        return
    if leader.partition_epoch < state.partition_epoch and not settings.rules.known_state_keeps_request:
        return  # Known metadata may have dropped its request (S100); what that loses breaks I6 and I7.
    proposed = () if leader.pending is None else leader.pending.members
    maximal = {*leader.isr, *proposed}
    if not maximal.issuperset((*state.isr, *state.elr)):
        yield "I8", f"leader {leader.broker} counts {sorted(maximal)}, the controller {state.isr} and {state.elr}"


def _present(cluster: CheckedCluster, reference: ReferenceLog, node: NodeView) -> ObservedLog | None:
    """Return the log of a broker whose present incarnation the controller knows; None if the log is not open.

    An undated log keeps what an unclean leader lacks, in Kafka too, and is not checked then.
    """
    observed = reference.observed_logs.get(node.broker)
    if observed is None or observed.incarnation != node.incarnation or not is_known(cluster, node):
        return None
    return None if reference.former_end and observed.is_undated else observed
