"""Read, build, rewrite and scan record batches in all three message formats."""

__all__: tuple[str, ...] = ()
