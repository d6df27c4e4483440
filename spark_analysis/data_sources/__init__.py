"""Give Spark its data sources: dumps of clusters, metadata logs, segments, consumer groups, and simulated fleets.

`spark_analysis.register(spark)` registers them all in a session; then `spark.read.format("kafka_cluster").load(path)`.
Only the modules of data sources and the registry import pyspark.

- registry: Register every data source and SQL function in a Spark session, with one call.
- kafka_cluster: Read dumps of clusters in every known format as `spark.read.format("kafka_cluster")`.
- kafka_metadata: Read metadata logs as `spark.read.format("kafka_metadata")`: states at moments, or events.
- kafka_fleet: Simulate a fleet as `spark.read.format("kafka_fleet")`, as each of its placers places it.
- kafka_groups: Read what kafka-consumer-groups --describe printed as `spark.read.format("kafka_groups")`.
- kafka_log: Read the records of segment files as `spark.read.format("kafka_log")`.
- options: Check the options of a data source, each against what it allows.
- dump_rows: Turn dumps into rows of one table, a fault row for each input or entry that cannot be used.
- metadata_rows: Turn metadata logs into rows of one table: the state at moments, or the history as events.
- group_batches: Turn what kafka-consumer-groups printed into rows of one table of kafka_groups.
- log_listing: Find the segments below the paths of kafka_log, and the topic and partition of each.
- log_filter: Choose records by topic, partition, offset and time: which segments, which batches, which rows.
- log_rows: Turn segments into rows of one table of kafka_log: records, batches, damage, or the segments themselves.
- log_batches: Turn the chunks of a scan into one row per batch, with what its records add up to.
- committed: Choose the batches that a consumer with isolation.level=read_committed is given.
- tiered: Read a tiered segment that is stored in chunks: its manifest, its chunks, and its transaction index.
- source: Share what the data sources have in common: the option `table`, the schema, inputs grouped into tasks.
- spark_types: Turn a table's columns into Spark's schema, and check a schema that the user gives.
"""

__all__: tuple[str, ...] = ()
