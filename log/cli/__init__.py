"""The command line: `brokerside log`, one module a command; `main` has the group."""
