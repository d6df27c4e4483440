"""The producer's side: partitions of keys, partitioners, batching."""
