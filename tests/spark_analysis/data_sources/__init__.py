"""Data sources: what each gives to Spark, and what it does with input that cannot be used."""
