"""Compare ours with Kafka's own classes in every area, on new random cases: `python -m tests.kafka.differential`.

- areas: Define what an area offers, the loop over all of them, and how a difference is made small.
- placers: Draw clusters and topics for the placers, and keys for Java's hash tables.
- assignors: Draw lives of consumer groups for the six assignors.
- controllers: Draw histories of brokers and partitions for the controller.
- batches: Draw batches of every magic, built and read by both, whole and damaged.
- logs: Draw programs of operations for UnifiedLog and the cleaner.
- dumps: Draw files of logs, whole and damaged, for kafka-dump-log.
- metadata: Draw sequences of metadata records for Kafka's images, and any records for kafka-dump-log.
"""
