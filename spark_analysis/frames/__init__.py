"""Turn DataFrames of partitions into DataFrames of answers, a cluster at a time, on executors.

- transforming: Let every question be asked directly, and in `DataFrame.transform`.
- matrices: Turn Arrow lists of broker ids into padded matrices, without a Python object per partition.
- impossible: Find the rows of partitions that no cluster can have, as the readers of dumps do.
- views: Make clusters from rows of partitions and of brokers, and say which rows cannot be used.
- inputs: Check and choose the columns of the DataFrames that a question takes, before any job runs.
- log_inputs: Check and group DataFrames of batches, records and segments, and count the rows that cannot be used.
- listed_brokers: Tell rows of brokers from the rows of partitions among which they stand.
- answering: Answer a question about many clusters in a task, from their sorted rows.
- per_cluster: Answer a question about each cluster of a DataFrame, many clusters a task.
- per_group: Answer a question about each consumer group of a DataFrame, many groups a task.
"""

__all__: tuple[str, ...] = ()
