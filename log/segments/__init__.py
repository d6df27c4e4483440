"""Store a log's segments, decide when they roll, and find offsets and times in them.

- segment: Append to, read and truncate one segment: a log file and its three indexes.
- log_segments: Keep the segments of a log in the order of their base offsets.
- rolling: Decide when a log rolls its active segment, and the base offset of the next one.
- search: Find a batch or record by offset or by time in a sequence of batches.
- lookups: Find the batches for many offsets or times in one segment.
- segment_files: Name, open, rename and remove the files of a segment together.
- file_names: Name a partition's files, and read offsets and kinds from their names.
- entries_kernel: Find the index entries that an append of many batches adds, in one compiled walk.
- lookups_kernel: Walk from many start positions to the batches that answer as many look-ups, compiled.
"""

__all__: tuple[str, ...] = ()
