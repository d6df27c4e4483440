"""Consumer groups: the protocol in which the broker assigns."""
