"""Read and write the small files beside the segments: checkpoints, properties, directory names, the lock."""

__all__: tuple[str, ...] = ()
