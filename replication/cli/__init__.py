"""Commands that join several rooms: `simulate` and its options."""
