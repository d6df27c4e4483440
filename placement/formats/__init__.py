"""to be written."""

__all__: tuple[str, ...] = ()
