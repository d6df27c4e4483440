"""Start Spark on a Java that is there, stop it, and show how far a job is."""
