//@ file since 4.2
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/**
 * Times of Kafka's own log classes, each run told in wall time and in CPU time of the calling thread; the collector
 * of garbage runs on other threads and is not counted, in Kafka's favour. Files are made and copied beforehand.
 */
final class LogTimings {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final TopicPartition PARTITION = new TopicPartition("topic", 0);

    /** Written from every result, so that no work can be optimised away. */
    private static long sink;

    private final ArrayNode wallNs = JsonNodeFactory.instance.arrayNode();
    private final ArrayNode cpuNs = JsonNodeFactory.instance.arrayNode();
    private final ObjectNode told = JsonNodeFactory.instance.objectNode();
    private final JsonNode request;
    private final int repeats;

    private LogTimings(JsonNode request) {
        this.request = request;
        this.repeats = request.get("repeats").asInt();
    }

    static ObjectNode measure(JsonNode request) throws Exception {
        LogTimings timings = new LogTimings(request);
        switch (request.get("what").asText()) {
            case "scan" -> timings.scan(true);
            case "headers" -> timings.scan(false);
            case "append" -> timings.append();
            case "recover" -> timings.recover();
            case "clean" -> timings.clean();
            default -> throw new IllegalArgumentException("no timing " + request.get("what"));
        }
        timings.told.set("wallNs", timings.wallNs);
        timings.told.set("cpuNs", timings.cpuNs);
        timings.told.put("sink", sink);
        return timings.told;
    }

    private interface Work {
        void run() throws Exception;
    }

    private void timed(Work work) throws Exception {
        long wall = System.nanoTime();
        long cpu = THREADS.getCurrentThreadCpuTime();
        work.run();
        cpuNs.add(THREADS.getCurrentThreadCpuTime() - cpu);
        wallNs.add(System.nanoTime() - wall);
    }

    /** Read a segment file batch by batch; deeply, with the CRC of each batch and every record, or headers alone. */
    private void scan(boolean deep) throws Exception {
        try (FileRecords records = FileRecords.open(new File(request.get("file").asText()), false)) {
            for (int round = 0; round < repeats; round++) {
                long[] count = new long[1];
                timed(() -> {
                    for (FileChannelRecordBatch batch : records.batches()) {
                        if (!deep) {
                            count[0] += batch.countOrNull();
                            continue;
                        }
                        batch.ensureValid();
                        for (Record record : batch) {
                            sink += record.offset() + record.keySize() + record.valueSize();
                            count[0]++;
                        }
                    }
                });
                told.put("records", count[0]).put("bytes", records.sizeInBytes());
            }
        }
    }

    /** Encode the records of a segment file anew, in batches, and append so many batches at once to a new segment. */
    private void append() throws Exception {
        int atOnce = request.get("batchesAtOnce").asInt();
        List<List<SimpleRecord>> batches = groups(request.get("batchRecords").asInt());
        Compression compression = Compression.of(CompressionType.forName(request.get("compression").asText())).build();
        for (int round = 0; round < repeats; round++) {
            Path directory = Files.createTempDirectory(Path.of(request.get("scratch").asText()), "append");
            LogSegment segment = open(directory.toFile(), 0, false);
            timed(() -> {
                ByteBuffer buffer = ByteBuffer.allocate(4 << 20);
                long offset = 0;
                int waiting = 0;
                for (List<SimpleRecord> batch : batches) {
                    MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, compression, TimestampType.CREATE_TIME, offset);
                    for (SimpleRecord record : batch) {
                        builder.append(record);
                    }
                    builder.build();
                    offset += batch.size();
                    if (++waiting == atOnce) {
                        append(segment, offset - 1, buffer);
                        waiting = 0;
                    }
                }
                if (waiting > 0) {
                    append(segment, offset - 1, buffer);
                }
            });
            told.put("bytes", segment.size());
            segment.close();
            remove(directory);
        }
    }

    /** Append the batches that were built one after the other in a buffer, and clear it. */
    private static void append(LogSegment segment, long lastOffset, ByteBuffer buffer) throws IOException {
        segment.append(lastOffset, MemoryRecords.readableRecords(buffer.duplicate().flip()));
        buffer.clear();
    }

    private List<List<SimpleRecord>> groups(int size) throws IOException {
        List<List<SimpleRecord>> groups = new ArrayList<>();
        long count = 0;
        try (FileRecords records = FileRecords.open(new File(request.get("file").asText()), false)) {
            for (Record record : records.records()) {
                if (count++ % size == 0) {
                    groups.add(new ArrayList<>(size));
                }
                groups.get(groups.size() - 1).add(new SimpleRecord(record));
            }
        }
        told.put("records", count);
        return groups;
    }

    /** Recover one segment: CRC of every batch, indexes, producer state and leader epochs rebuilt. */
    private void recover() throws Exception {
        for (int round = 0; round < repeats; round++) {
            Path directory = copied();
            LogSegment segment = open(directory.toFile(), request.get("baseOffset").asLong(), true);
            ManualTime time = new ManualTime(0);
            ProducerStateManager producers = new ProducerStateManager(PARTITION, directory.toFile(),
                    LogProgram.TRANSACTION_TIMEOUT_MS,
                    new ProducerStateManagerConfig(LogProgram.PRODUCER_ID_EXPIRATION_MS, false), time);
            LeaderEpochFileCache epochs = new LeaderEpochFileCache(PARTITION,
                    new LeaderEpochCheckpointFile(LeaderEpochCheckpointFile.newFile(directory.toFile()),
                            new LogDirFailureChannel(1)), time);
            timed(() -> sink += segment.recover(producers, epochs));
            told.put("bytes", segment.size());
            segment.close();
            remove(directory);
        }
    }

    /** Clean a whole log from its first dirty offset, 0, up to its active segment, as Cleaner.clean does. */
    private void clean() throws Exception {
        for (int round = 0; round < repeats; round++) {
            Path directory = copied();
            ManualTime time = new ManualTime(request.get("nowMs").asLong());
            UnifiedLog log = Logs.open(directory.toFile(), LogProgram.config(request.get("config")), time, true, 0, 0, Optional.empty());
            log.updateHighWatermark(log.logEndOffset());
            Cleaning.Work work = Cleaning.Work.whole(log, time, request.get("mapBytes").asInt(), 0.9);
            timed(work::run);
            ObjectNode done = JsonNodeFactory.instance.objectNode();
            work.tell(done);
            told.set("records", done.get("messagesRead"));
            told.set("survivors", done.get("messagesWritten"));
            told.set("bytes", done.get("bytesRead"));
            told.set("bytesWritten", done.get("bytesWritten"));
            Logs.close(log);
            remove(directory);
        }
    }

    private static LogSegment open(File directory, long baseOffset, boolean exists) throws IOException {
        LogConfig config = new LogConfig(new java.util.HashMap<>());
        if (exists && !LogFileUtils.logFile(directory, baseOffset).exists()) {
            throw new IllegalArgumentException("no segment " + baseOffset + " in " + directory);
        }
        return LogSegment.open(directory, baseOffset, config, new ManualTime(0), exists, 0, false, "");
    }

    private Path copied() throws IOException {
        Path directory = Files.createTempDirectory(Path.of(request.get("scratch").asText()), "copy").resolve("topic-0");
        LogFiles.copy(new File(request.get("directory").asText()), directory);
        return directory;
    }

    private static void remove(Path directory) throws IOException {
        Path whole = directory.endsWith("topic-0") ? directory.getParent() : directory;
        try (Stream<Path> paths = Files.walk(whole)) {
            paths.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        }
    }
}
