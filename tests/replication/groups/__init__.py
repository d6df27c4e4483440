"""Groups in the replicated cluster."""
