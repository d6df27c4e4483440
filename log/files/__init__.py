"""The small files beside the segments: checkpoints, properties, names of directories, the lock."""

__all__: tuple[str, ...] = ()
