"""Read, check, measure and rework what stands on disk, without a broker and without changing what is read.

Each module computes and returns; `log.cli` parses the command line and prints. `sources` is the one place that knows
which files a path names.
"""
