"""Decide what Kafka's brokers and controller decide about one partition, as pure functions of frozen values.

What it decides: each module holds one rule or a few that belong together, in the order in which to read them.

    partition           Values: a partition as controller, leader and follower see it, a log, a registered broker.
    settings            The settings of a partition, and the time and metadata at a broker (`Moment`).
    switches            Fixes of Kafka's history as switches; the rules of each release from 0.10.2 to 4.1.
    epochs              Where does a leader epoch begin and end in a log? LeaderEpochFileCache.
    fencing             Is a broker alive, is its request current, was its last stop clean?
    min_isr             How many in-sync replicas does a partition need? effectiveMinIsr.
    isr                 Which follower is dropped from the ISR, which may join? maybeShrinkIsr, maybeExpandIsr.
    high_watermark      How far is the log committed? maybeIncrementLeaderHW.
    out_of_sync         How far behind is each replica outside the ISR, and why is it outside?
    election            Which replica leads next? ElectLeaders, LeaderElection, unclean leader election.
    elr                 Which replicas outside the ISR may still be elected cleanly? ELR, KIP-966.
    reassign            How does a reassignment start, complete and cancel? PartitionReassignmentReplicas.
    partition_change    What follows from a new ISR or new replicas? PartitionChangeBuilder.
    controller_events   What does the controller do when a broker is fenced, unfenced, restarts, or fails a disk?
    alter_partition     Is an AlterPartition request accepted, and what does the leader make of the answer?
    leadership          What does a broker assume when it becomes leader or follower? makeLeader, makeFollower.
    truncation          What does a follower cut from its log? KIP-101, KIP-279, KIP-320.
    fetch               What does a leader answer to a follower's fetch, and what does the follower do with it?
    produce             Is a produce request accepted, when is it answered, what may the producer believe?
    follower_read       Which replica does a consumer read from, and up to where? KIP-392.
    position            May a consumer go on from its position after a change of leader? KIP-320.
    deletion            When is a DeleteRecords request done? The low watermark.
    stray               Which logs on a broker's disk belong to no partition of that broker?

Constraints: no rule reads a clock, draws a random number or changes its arguments; time and metadata come in as a
`Moment`, the release as `Rules`. Modules import only what stands above them in the list, but `settings`, which
imports `switches`, and `alter_partition`, which imports `controller_events`.
"""
