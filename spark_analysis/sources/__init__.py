"""What the jobs read: the only place that opens input files."""

__all__: tuple[str, ...] = ()
