"""Decide what Kafka's brokers and controller decide about one partition, as pure functions of frozen values.

What it decides: each module holds one rule or a few that belong together, in the order in which to read them.

    partition           Define the values: a partition as controller, leader and follower see it, a log, a broker.
    switches            Define fixes of Kafka's history as switches, and each release's rules from 0.10.2 to 4.1.
    settings            Hold the settings of a partition, and the time and metadata at a broker (`Moment`).
    epochs              Find where a leader epoch begins and ends in a log (LeaderEpochFileCache).
    fencing             Tell live brokers, current requests and clean shutdowns from others.
    min_isr             Count the in-sync replicas that a partition needs (effectiveMinIsr).
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
    produce             Accept and answer a produce request (appendRecordsToLeader, DelayedProduce).
    follower_read       Choose the replica that a consumer reads from, and the records it shows (KIP-392).
    position            Validate a consumer's position after a change of leader (KIP-320).
    deletion            Accept a DeleteRecords request, and find when it is done (the low watermark).
    stray               Find the logs on a broker's disk that belong to none of its partitions.

Constraints: no rule reads a clock, draws a random number or changes its arguments; time and metadata come in as a
`Moment`, the release as `Rules`. A module imports only modules above it in the list.
"""
