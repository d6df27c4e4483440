"""Give Spark its data sources: dumps of clusters, metadata logs, segment files, and simulated fleets.

`spark_analysis.register(spark)` registers them all in a session; then `spark.read.format("kafka_cluster").load(path)`.
Only the modules of data sources and the registry import pyspark.

- registry: Register every data source in a Spark session, with one call.
- kafka_cluster: Read dumps of clusters in every known format as `spark.read.format("kafka_cluster")`.
- options: Check the options of a data source, each against what it allows.
- listing: Find the files that the paths of a data source name, and group them by size into tasks.
- dump_rows: Turn dumps into rows of one table, a fault row for each input or entry that cannot be used.
- spark_types: Turn a table's columns into Spark's schema, and check a schema that the user gives.
"""

__all__: tuple[str, ...] = ()
