"""What a log knows of idempotent and transactional producers, and the snapshots of it."""

__all__: tuple[str, ...] = ()
