"""Facts about who holds what."""
