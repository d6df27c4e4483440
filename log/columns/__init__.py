"""Records as columns: walks over batch headers and records by compiled loops, a bounded number of rows at a time."""

__all__: tuple[str, ...] = ()
