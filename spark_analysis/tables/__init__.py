"""List every column that jobs write, and write and read the tables.

- columns: Define what a table is: a name, a grain, and columns with a type, a unit and a meaning; make its batches.
- limits: Hold the limits that the jobs and the report must agree on.
- schemas: List the tables that jobs write, data sources give and questions answer, from schemas.txt.
- lists: Turn padded matrices of broker ids into Arrow lists, without a Python object per partition.
- scan: Read the rows of a table's files in batches, those of chosen clusters alone.
- cluster_rows: Hold some clusters as columns: their facts, their rows of each table, their measures and ranks.
- view_columns: Turn a ClusterView into the columns that data sources give to Spark, a batch at a time.
- partition_rows: Turn the partitions of one cluster into rows of the table of partitions, a batch at a time.
- view_rows: Turn the cluster of a dump into rows of the tables: its loads, its spreads, its violations.
- outage_rows: Count what losing each broker and each rack does, for all clusters of a batch at once.
- advice_rows: Turn the cluster of a dump into rows that say what to do next: plans, worst outages, restarts.
- place: Name where tables and a report stand: a folder of this machine, or a URI that Spark writes to.
- batching: Collect what kernels find into Arrow batches of each table.
- write: Write and read result tables: Parquet folders that Spark, pyarrow and DuckDB read alike.
- log: Write log files as Parquet tables, for `brokerside log dump --out`.
- answers: Write the files of one answer, Parquet tables and texts, into a folder: each file whole.
"""
