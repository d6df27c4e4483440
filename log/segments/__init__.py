"""Store a log's segments, decide when they roll, and find offsets and times in them.

- segment: Append to, read and truncate one segment: a log file and its three indexes.
- log_segments: Keep the segments of a log in the order of their base offsets.
- index_file: Store sorted entries of fixed size in a preallocated file, and search them.
- offset_index: Look up file positions by offset.
- time_index: Look up offsets by timestamp.
- txn_index: List the aborted transactions of a segment.
- rolling: Decide when a log rolls its active segment, and the base offset of the next one.
- search: Find a batch or record by offset or by time in a sequence of batches.
- segment_files: Name, open, rename and remove the files of a segment together.
- file_names: Name a partition's files, and read offsets and kinds from their names.
"""

__all__: tuple[str, ...] = ()
