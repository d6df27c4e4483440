"""Register every data source and SQL function in a Spark session, with one call.

Nothing of the session is configured.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

from spark_analysis.data_sources.kafka_cluster import KafkaClusterSource
from spark_analysis.data_sources.kafka_fleet import KafkaFleetSource
from spark_analysis.data_sources.kafka_groups import KafkaGroupsSource
from spark_analysis.data_sources.kafka_log import KafkaLogSource
from spark_analysis.data_sources.kafka_metadata import KafkaMetadataSource
from spark_analysis.functions import register_functions

SOURCES: Final = (KafkaClusterSource, KafkaMetadataSource, KafkaLogSource, KafkaFleetSource, KafkaGroupsSource)


def register(spark: SparkSession) -> None:
    """Register every data source and SQL function of this package in the session `spark`, classic or Connect."""
    for source in SOURCES:
        spark.dataSource.register(source)
    register_functions(spark)
