"""Append to, read, recover, truncate and retain one partition's log.

- partition_log: Offer one partition's log to leaders, followers, consumers and the broker, as Kafka's UnifiedLog does.
- appending: Append to a log: as its leader, as a follower, or many batches at once.
- leader_append: Assign offsets, leader epoch and timestamps to the records that a leader accepts.
- record_set: Check a record set before it is appended, and read its offsets, largest timestamp and codec.
- reading: Read a log by offset and by time.
- log_offsets: Decide where a log starts, ends, is replicated, stable and on disk; describe it as one value.
- epoch_cache: Store the start offset of each leader epoch of a log.
- local_log: Keep the segments of one partition on one disk: roll, truncate, replace, flush, and delete with a delay.
- retention: Decide which of the oldest segments are deleted: by log start offset, size and age.
- recovery: Load a log after a shutdown or crash: finish or undo interrupted work, recover the unflushed.
- segment_recovery: Recover one segment: check every batch, cut at the first bad one, and rebuild the indexes.
- producer_append: Check the batches of one producer against its sequence, epoch and open transaction.
- producer_entry: Hold one producer, order producers as Java's hash table does, and read and write their snapshots.
- producer_state: Track the producers of a log: sequences, epochs and open transactions.
"""
