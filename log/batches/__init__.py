"""Batches of records in all three formats: read, built, rewritten, and scanned."""

__all__: tuple[str, ...] = ()
