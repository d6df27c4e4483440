"""Define the commands of `brokerside log`, one module per command; `main` holds the group."""
