"""Find a Java, start Spark on it and stop it, and show the progress of a job."""
