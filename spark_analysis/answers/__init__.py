"""Answer questions about one cluster, for `--ask` and the DataFrame functions. Nothing here imports pyspark.

- question: Define a question: its table, its assumptions, its answer for one cluster, and what is shown of many.
- registry: List the questions by name, and read `--ask` and `--assume`.
- sums: Sum up answers over clusters: means and quantiles of groups of rows, in a fixed order.
- availability: Ask for the chance that a partition is leaderless, under min-ISR or lost.
- durability: Ask how often each cluster loses data, and for its copysets beside the fewest possible.
- movement: Plan what changing the brokers of each cluster moves: brokers that join, one that leaves, a rack that joins.
- storage: Ask what topics take on brokers: replicas, bytes, and the broker with most bytes of a topic.
- group_rows: Answer questions about consumer groups, with the assignors and the model of traffic.
- traffic: Ask what produce, replication and consume send across zones, and what changes save.
- consumers: Ask how each of Kafka's assignors would serve consumer groups.
"""

__all__: tuple[str, ...] = ()
