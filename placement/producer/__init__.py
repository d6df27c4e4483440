"""Choose partitions as Kafka's producer does: key hashing, partitioners, batching."""
