"""The Spark session of a run: Java, options, progress."""
