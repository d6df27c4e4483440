"""Run a job's tasks, on Spark or in this process, with the same rows and files.

    engine  Define what a job asks of an engine.
    local   Run tasks in this process, without Spark.
    frames  Write a DataFrame as a table.
    spark   Run tasks on the executors of a Spark session.

A task writes files and knows nothing of engines (tasks.py); the job ranks the clusters itself, on any engine
(jobs.py). Only `frames` and `spark` import pyspark.
"""

__all__: tuple[str, ...] = ()
