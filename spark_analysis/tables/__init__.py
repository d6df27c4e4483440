"""List every column that jobs write, and write and read the tables.

- columns: Define what a table is: a name, a grain, and columns with a type, a unit and a meaning.
- advice_schemas: List the tables of what to do next with the cluster of a dump: plans, outages, restarts.
- schemas: List the tables that every job writes; this decides each column's type, unit and meaning.
- source_schemas: List the tables that data sources give to Spark, each column with its type, unit and meaning.
- log_schemas: List the tables that the data source kafka_log gives to Spark: records, batches, damage, segments.
- group_schemas: List the tables of consumer groups: members as they are given, and what is answered of each group.
- storage_schemas: List the tables that answer what logs and replicas take.
- study_rows: Hold the schema of the rows of a study, and write them as Parquet.
- scan: Read the rows of a table's files in batches, those of chosen clusters alone.
- sums: Compute measures from sums, and the ranks of clusters, in executors and in process alike.
- write: Write and read result tables: Parquet folders that Spark, pyarrow and DuckDB read alike.
- view_rows: Turn the cluster of a dump into rows of the tables: its loads, its spreads, its violations.
- advice_rows: Turn the cluster of a dump into rows that say what to do next: plans, worst outages, restarts.
- partition_rows: Turn the partitions of one cluster into rows of the table of partitions, a batch at a time.
- lists: Turn padded matrices of broker ids into Arrow lists, without a Python object per partition.
- repeated: Make an Arrow column that repeats one text, such as the placer of a cluster's rows.
- view_columns: Turn a ClusterView into the columns that data sources give to Spark, a batch at a time.
- log: Write log files as Parquet tables, for `brokerside log dump --out`.
- answers: Write the files of one answer, Parquet tables and texts, into a folder: each file whole.
- cluster_rows: Hold some clusters as columns: their facts, their rows of each table, and the shares of their groups.
- batches: Turn columns, as numpy, Arrow or Python holds them, into Arrow batches of a table.
- spreads: Sum up the shares of clusters over their brokers, racks or topics, and the best spread of each.
- staging: Write what executors find into one file of rows per task and table; Spark receives only the file names.
- limits: Hold the limits that the jobs and the report must agree on.
- pairs_kernel: Count the partitions that brokers share, in one compiled loop over replicas.
"""
