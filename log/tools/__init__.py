"""Read, check, measure, compact and recover log files without a broker.

Each module computes and returns; `log.cli` parses the command line and prints. `sources` is the one place that knows
which files a path names.

- sources: Decide which files a path names: a file, a partition's directory, a log directory, or a metadata log.
- findings: Describe damage by file, position and cause, count the data, and collect what kafka-dump-log reports.
- index_entries: Read the entries of a segment's offset or time index, for whoever prints or checks them.
- timestamps: Show timestamps as dates, and say which are no milliseconds and what retention makes of them.
- verify_segment: Check one segment: its bytes, its offsets and its indexes.
- verify: Check segments, indexes, snapshots and checkpoints for damage.
- transactions: Find a partition's transactions: open, hanging (KIP-664) and aborted.
- stats: Measure the contents of a log: codecs, keys, batches, times, transactions.
- open_log: Open one partition's files for all commands: damage, what a pass would keep, how much there is.
- rework: Compact or recover a partition as its broker would, on a copy or in place.
- rework_plan: Plan a compaction or recovery, print the plan, and carry it out.
- dump_options: Define the options of a dump: depth, data and its decoding, and a range of offsets.
- dump_text: Print a segment's files in the format of kafka-dump-log.
- dump_rows: Print a log's files as JSON, one object per line; and the small files of a log directory as text.
- dump_index: Print indexes and producer snapshots in the format of kafka-dump-log.
- dump_topics: Print the records of internal topics as the decoders of kafka-dump-log do.
"""
