"""The segments of a log: their files, when they roll, and how a place in them is found."""

__all__: tuple[str, ...] = ()
