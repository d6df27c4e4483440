"""Compute checksums, encode varints, and compress records in Kafka's framings."""

__all__: tuple[str, ...] = ()
