"""Read, check, measure, compact and recover log files without a broker.

Each module computes and returns; `log.cli` parses the command line and prints. `sources` is the one place that knows
which files a path names.
"""
