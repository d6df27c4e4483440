"""The commands of `brokerside log`."""
