"""Track the idempotent and transactional producers of a log, and write their snapshots."""

__all__: tuple[str, ...] = ()
