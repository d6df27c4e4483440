"""Index a segment by offset, by time, and by aborted transaction."""

__all__: tuple[str, ...] = ()
