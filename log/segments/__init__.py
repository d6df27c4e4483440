"""Store a log's segments, decide when they roll, and find offsets and times in them."""

__all__: tuple[str, ...] = ()
