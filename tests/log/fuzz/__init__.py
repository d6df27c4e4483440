"""Seeded fuzzing of every parser of the log: `mutator` makes inputs, `target` says what is run and what may happen."""
