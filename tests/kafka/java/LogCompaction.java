import java.io.IOException;
import java.nio.file.Files;
import java.util.List;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/** One pass of Kafka's cleaner over the log of a program, told as the golden operation `clean` tells it. */
final class LogCompaction {
    private static final int BYTES_PER_SLOT = 24;
    /** When every file was last written, as the golden runner has it where the case does not say. */
    private static final long FILE_TIME_MS = 1_900_000_000_000L;

    private final LogProgram program;

    LogCompaction(LogProgram program) {
        this.program = program;
    }

    void clean(ObjectNode operation, ObjectNode result) throws Exception {
        UnifiedLog log = program.log;
        for (LogSegment segment : program.filesHaveClockTimes ? List.<LogSegment>of() : log.logSegments()) {
            segment.setLastModified(FILE_TIME_MS);  // The fate of old tombstones is the files', not the machine's clock's.
        }
        Cleaning cleaning = new Cleaning(log, program.time);
        result.put("currentTimeMs", program.time.milliseconds());
        if (!cleaning.describe(result)) {
            return;  // Choosing might correct the checkpoint, and the program will leave this operation out.
        }
        var chosen = cleaning.chosen();
        result.put("selected", chosen.isPresent());
        if (chosen.isPresent()) {
            int mapBytes = operation.get("offsetMapSlots").asInt() * BYTES_PER_SLOT;
            long endOffset = result.get("firstDirtyOffset").asLong();
            try {
                cleaning.clean(chosen.get(), mapBytes, operation.get("dupBufferLoadFactor").asDouble(), result);
                endOffset = result.get("endOffset").asLong();
            } finally {
                cleaning.done(endOffset);  // As LogCleaner does, which notes where a failed pass began.
            }
            result.set("filesRightAfter", LogFiles.names(program.directory));
            program.time.sleep(program.config.fileDeleteDelayMs + 1);
            result.set("filesAfterDeleteDelay", LogFiles.names(program.directory));
            result.put("cleanerOffsetCheckpoint", Files.readString(cleaning.checkpointFile().toPath()));
            result.set("survivors", survivors(log));
        }
    }

    private static ArrayNode survivors(UnifiedLog log) {
        ArrayNode survivors = com.fasterxml.jackson.databind.node.JsonNodeFactory.instance.arrayNode();
        for (LogSegment segment : log.logSegments()) {
            for (FileChannelRecordBatch batch : segment.log().batches()) {
                for (Record record : batch) {
                    survivors.addArray().add(segment.baseOffset()).add(record.offset()).add(record.timestamp())
                            .add(LogFiles.base64(record.key())).add(LogFiles.base64(record.value()))
                            .add(batch.isControlBatch());
                }
            }
        }
        return survivors;
    }
}
