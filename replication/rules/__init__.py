"""Decide what Kafka's brokers and controller decide about one partition, as pure functions of frozen values.

What it decides: each module holds one rule or a few that belong together, in the order in which to read them.

    partition           Define the values: a partition as controller, leader and follower see it, a log, a broker.
    switches            Define fixes of Kafka's history as switches, and each release's rules since 0.10.2.
    settings            Hold the settings of a partition (effectiveMinIsr), and the time and metadata at a broker.
    epochs              Find where a leader epoch begins and ends in a log (LeaderEpochFileCache).
    fencing             Tell live brokers, current requests, clean shutdowns and stray logs from others.
    isr                 Drop lagging followers from the ISR and add caught-up ones (maybeShrinkIsr, maybeExpandIsr).
    high_watermark      Find how far the log is committed (maybeIncrementLeaderHW).
    out_of_sync         Describe how far behind each replica outside the ISR is, and why it is outside.
    election            Elect the next leader: preferred, clean or unclean (ElectLeaders).
    elr                 Keep the replicas outside the ISR that may still be elected cleanly (ELR, KIP-966).
    reassign            Start, complete and cancel a reassignment (PartitionReassignmentReplicas).
    partition_change    Derive everything that follows from a new ISR or new replicas (PartitionChangeBuilder).
    controller_events   Change partitions when a broker is fenced, unfenced, restarts or loses a disk.
    alter_partition     Accept or refuse an AlterPartition request, and react to the answer.
    leadership          Become leader or follower of a partition (makeLeader, makeFollower).
    truncation          Truncate a diverging follower's log (OffsetsForLeaderEpoch, KIP-101, KIP-279, KIP-320).
    fetch               Answer a follower's fetch, and apply the answer (fetchMessages, updateFollowerFetchState).
    produce             Accept and answer produce and DeleteRecords requests (appendRecordsToLeader).
    follower_read       Choose the replica that a consumer reads from, and validate its position (KIP-392, KIP-320).

Constraints: no rule reads a clock, draws a random number or changes its arguments; time and metadata come in as a
`Moment`, the release as `Rules`. A module imports only modules above it in the list.
"""
