"""The indexes of a segment: by offset, by time, and of aborted transactions."""

__all__: tuple[str, ...] = ()
