"""Turn DataFrames of partitions into DataFrames of answers, a cluster at a time, on executors.

- matrices: Turn Arrow lists of broker ids into padded matrices, without a Python object per partition.
- impossible: Find the rows of partitions that no cluster can have, as the readers of dumps do.
- views: Make a ClusterView from rows of partitions and of brokers, and say which rows cannot be used.
- inputs: Check and choose the columns of the DataFrames that a question takes, before any job runs.
- log_inputs: Check and group DataFrames of batches, records and segments, and count the rows that cannot be used.
- whole_clusters: Cut a stream of sorted rows into whole clusters, many at a time.
- listed_brokers: Tell rows of brokers from the rows of partitions among which they stand.
- chunks: Hold many regular clusters as columns.
- many: Answer questions about all regular clusters of a chunk at once.
- many_outages: Show what losing each broker and each rack does to all regular clusters at once.
- hit_rows: List the partitions that losing each rack, or each broker, brings into a bad state.
- move_rows: List the partitions that the least plan of a cluster changes: their replicas and leaders before and after.
- answering: Answer a question about many clusters in a task, from their sorted rows.
- per_cluster: Answer a question about each cluster of a DataFrame, many clusters a task.
- compaction_rows: Estimate on executors what one cleaning pass would leave of a partition.
- change_rows: Compute what changes save for one cluster, from what its groups read from each zone.
- per_group: Answer a question about each consumer group of a DataFrame, many groups a task.
- runs: Give every row of a DataFrame the run that made it and the time of what it says.
"""

__all__: tuple[str, ...] = ()
