"""Start from short programs that read the tables of a run: with pandas, with DuckDB, with Spark."""
