"""Append to, read, recover, truncate and retain one partition's log.

- partition_log: Offer one partition's log to leaders, followers, consumers and the broker, as Kafka's UnifiedLog does.
- appending: Append to a log: as its leader, as a follower, or many batches at once.
- leader_rules: Decide which records a leader accepts into its log.
- leader_append: Assign offsets, leader epoch and timestamps to the records that a leader accepts.
- record_set: Check a record set before it is appended, and read its offsets, largest timestamp and codec.
- reading: Read a log by offset and by time.
- log_offsets: Decide where a log starts and ends, and up to where it is replicated, stable and on disk.
- epoch_cache: Store the start offset of each leader epoch of a log.
- local_log: Keep the segments of one partition on one disk: roll, truncate, replace, flush, and delete with a delay.
- flushing: Roll new segments, and flush written data to disk.
- retention: Decide which of the oldest segments are deleted: by log start offset, size and age.
- truncation: Truncate a log: to an offset within it, or fully.
- opening: Open a log: segments, producers, leader epochs and topic id; recover after an unclean shutdown.
- recovery: Load a log after a shutdown or crash: finish or undo interrupted work, and recover what was not flushed.
- segment_recovery: Recover one segment: check every batch, cut at the first bad one, and rebuild the indexes.
- splitting: Split a segment that contains an offset more than 2^31 - 1 above its base.
- producer_rebuild: Rebuild the state of producers up to an offset, from the newest snapshot and the batches after it.
- schedule: Schedule a log's later work: deleting files after a delay, flushing after a roll.
- log_description: Describe a log from outside: its offsets, segments, leader epochs and producers, as one value.
- log_invariants: Assert the invariants of a log.
"""
