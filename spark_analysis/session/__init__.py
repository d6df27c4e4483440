"""Find a Java, start Spark on it and stop it, and show the progress of a job.

java           Find a Java, or take the wheel's, and write the launcher that starts it.
settings       The settings of a session, from the caller, the environment and our own table.
archive        Pack our packages for executors.
spark_session  Start a session and end it.
progress       Show the progress of a job.
"""
