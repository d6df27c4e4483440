"""Ask a question about every cluster of a DataFrame: partitions in, a DataFrame of answers out.

- balance: Measure how evenly each cluster is loaded, beside the best that it can reach.
- violations: List what is wrong in each cluster.
- outages: Show what losing each broker and each rack does.
- movement: Compute how little each cluster must move, and what changing its brokers costs.
- availability: Compute the chance that partitions are leaderless, under min-ISR or lost.
- durability: Compute how often each cluster loses data, and count its copysets.
- storage: Measure what logs and replicas take: codecs, keys, compaction, topics on brokers.
- groups: Assign the partitions of consumer groups as Kafka would, with balance, moves and lag.
- traffic: Count what clusters and groups send across zones, and what changes save.
"""

__all__: tuple[str, ...] = ()
