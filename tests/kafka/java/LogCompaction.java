import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.concurrent.TimeUnit;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import kafka.log.Cleaner;
import kafka.log.CleanerStats;
import kafka.log.LogCleanerManager;
import kafka.log.LogToClean;
import kafka.log.OffsetsToClean;
import kafka.log.PreCleanStats;
import kafka.log.UnifiedLog;
import kafka.utils.Pool;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.utils.Throttler;

/** One pass of Kafka's cleaner over the log of a program, told as the golden operation `clean` tells it. */
final class LogCompaction {
    private static final int BYTES_PER_SLOT = 24;
    private static final int BUFFER_BYTES = 1 << 20;

    private final LogProgram program;
    private final Pool<TopicPartition, UnifiedLog> logs = new Pool<>(scala.Option.empty());

    LogCompaction(LogProgram program) {
        this.program = program;
    }

    void clean(ObjectNode operation, ObjectNode result) throws IOException {
        UnifiedLog log = program.log;
        File root = log.parentDirFile();
        TopicPartition partition = log.topicPartition();
        logs.put(partition, log);
        LogCleanerManager manager = new LogCleanerManager(
                scala.jdk.javaapi.CollectionConverters.asScala(java.util.List.of(root)).toSeq(), logs,
                new LogDirFailureChannel(1));
        scala.Option<Object> checkpoint = manager.allCleanerCheckpoints().get(partition);
        OffsetsToClean offsets = LogCleanerManager.cleanableOffsets(log, checkpoint, program.time.milliseconds());
        LogToClean before = new LogToClean(partition, log, offsets.firstDirtyOffset(),
                offsets.firstUncleanableDirtyOffset(), false);
        result.put("currentTimeMs", program.time.milliseconds());
        result.put("checkpointBefore", checkpoint.isEmpty() ? null : (Long) checkpoint.get());
        result.put("firstDirtyOffset", before.firstDirtyOffset());
        result.put("firstUncleanableOffset", offsets.firstUncleanableDirtyOffset());
        result.put("cleanableRatio", before.cleanableRatio());
        result.put("cleanBytes", before.cleanBytes()).put("cleanableBytes", before.cleanableBytes());
        if (before.totalBytes() == 0) {
            return;  // Choosing might correct the checkpoint, and the program will leave this operation out.
        }
        scala.Option<LogToClean> selected = manager.grabFilthiestCompactedLog(program.time, new PreCleanStats());
        result.put("selected", selected.isDefined());
        if (selected.isDefined()) {
            clean(operation, result, selected.get());
            manager.doneCleaning(partition, root, result.get("endOffset").asLong());
            result.set("filesRightAfter", LogFiles.names(program.directory));
            program.time.sleep(program.config.fileDeleteDelayMs + 1);
            result.set("filesAfterDeleteDelay", LogFiles.names(program.directory));
            result.put("cleanerOffsetCheckpoint",
                    Files.readString(root.toPath().resolve(manager.offsetCheckpointFile())));
            result.set("survivors", survivors(log));
        }
    }

    private void clean(ObjectNode operation, ObjectNode result, LogToClean selected) {
        try {
            int slots = operation.get("offsetMapSlots").asInt();
            Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(slots * BYTES_PER_SLOT), BUFFER_BYTES, BUFFER_BYTES,
                    operation.get("dupBufferLoadFactor").asDouble(),
                    new Throttler(Double.MAX_VALUE, TimeUnit.DAYS.toMillis(1), "cleaner", "bytes", program.time),
                    program.time, partition -> scala.runtime.BoxedUnit.UNIT);
            scala.Tuple2<Object, CleanerStats> done = cleaner.clean(selected);
            CleanerStats stats = done._2();
            result.put("needCompactionNow", selected.needCompactionNow()).put("endOffset", (Long) done._1());
            result.put("messagesRead", stats.messagesRead()).put("messagesWritten", stats.messagesWritten());
            result.put("bytesRead", stats.bytesRead()).put("bytesWritten", stats.bytesWritten());
            result.put("mapMessagesRead", stats.mapMessagesRead());
            result.put("invalidMessagesRead", stats.invalidMessagesRead());
        } catch (java.security.NoSuchAlgorithmException absent) {
            throw new IllegalStateException(absent);
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
