"""Define the command `simulate` and its options."""
