"""Read, build, rewrite and scan record batches in all three message formats.

- allowance: Bound what the few bytes of a file make a reader do: bytes decompressed, records and headers read.
- batch: Define RecordBatch, the interface of a batch in any format.
- batch_v2: Read record batches of magic 2 (since Kafka 0.11): a header of 61 bytes, then records, compressed or not.
- records_v2: Read the records of a batch of magic 2 as objects, one by one or many at once.
- legacy: Read messages of magic 0 and 1, plain or compressed in a wrapper message.
- messages_kernel: Read messages of magic 0 and 1 into columns, in one compiled pass.
- in_buffer: Split a buffer into the batches it holds, as Kafka's file reader or its memory reader does.
- build: Encode records as one batch of magic 2, or as messages of magic 0 or 1.
- scan: Read a whole segment file as columns of records.
- arrow_columns: Turn scanned records into Arrow columns, without a Python object a record.
- record_columns: Hold batches and records as columns, which a scan yields instead of objects.
- header_table: Walk over batch headers with the kernel, and name the columns of its table.
- fill: Read the records of batches of magic 2 into columns, a bounded number of rows at a time.
- build_columns: Encode columns of keys and values as many batches of magic 2, in one compiled pass.
- records_kernel: Read records of magic 2 into columns, in one compiled pass.
"""

__all__: tuple[str, ...] = ()
