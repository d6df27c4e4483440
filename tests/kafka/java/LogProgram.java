import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.FileRecords.TimestampAndOffset;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/**
 * A program of operations run on Kafka's UnifiedLog, written down as a golden case of kind `log`.
 *
 * Offsets may be asked for relative to the log: `atFraction` f is start + f * (end - start), and the batches of a
 * follower's append with `fromEnd` count from the log's end. The case that comes back has plain offsets.
 */
final class LogProgram {
    /** Newer releases refuse segments below 1 MiB under the public name, and have another for their own tests. */
    private static final String SEGMENT_BYTES = "segment.bytes";
    private static final String SMALL_SEGMENT_BYTES = "internal.segment.bytes";
    static final int PRODUCER_ID_EXPIRATION_MS = 86_400_000;
    static final int PRODUCER_ID_CHECK_MS = 600_000;
    static final int TRANSACTION_TIMEOUT_MS = 900_000;

    /** Golden files name these classes as they were called before 4.0. */
    private static final Map<String, String> MOVED = Map.of(
        "org.apache.kafka.server.storage.log.UnexpectedAppendOffsetException",
        "kafka.common.UnexpectedAppendOffsetException",
        "org.apache.kafka.storage.internals.log.OffsetsOutOfOrderException",
        "kafka.common.OffsetsOutOfOrderException");

    final File directory;
    final ManualTime time;
    final LogConfig config;
    private final Optional<Uuid> topicId;
    private final LogCompaction compaction = new LogCompaction(this);
    /** Whether files have the times of the program's clock, which the cleaner goes by for messages of old formats. */
    final boolean filesHaveClockTimes;
    private final Path folder;
    UnifiedLog log;

    private LogProgram(ObjectNode asked, Path folder) throws IOException {
        this.folder = folder;
        this.directory = folder.resolve("run").resolve("topic-0").toFile();
        this.config = config(asked.get("config"));
        this.time = new ManualTime(asked.get("startTimeMs").asLong());
        this.topicId = topicId(asked);
        this.filesHaveClockTimes = asked.path("fileTimes").asText().equals("clock");
        this.log = Logs.open(directory, config, time, true, 0, 0, topicId);
    }

    /**
     * Run the case's operations in the folder's topic-0, write results and states into it, and keep the closed files;
     * a log that cannot be opened again ends the case without both.
     */
    static ObjectNode run(ObjectNode asked, Path folder) throws Exception {
        LogProgram program = new LogProgram(asked, folder);
        ArrayNode operations = (ArrayNode) asked.get("ops");
        ObjectNode before = null;
        for (int index = 0; index < operations.size(); index++) {
            ObjectNode operation = (ObjectNode) operations.get(index);
            operation.put("nowMs", program.time.milliseconds());
            operation.set("result", program.result(operation));
            if (program.log == null) {
                while (operations.size() > index + 1) {
                    operations.remove(index + 1);  // Kafka could not open its log again: there is nothing to go on with.
                }
                return asked;
            }
            if (Double.isNaN(operation.get("result").path("cleanableRatio").asDouble())) {
                operations.remove(index--);  // Nothing was there to clean: the ratio is no number, nor one in JSON.
                continue;
            }
            JsonNode next = operations.get(index + 1);
            if (next == null || next.get("op").asText().equals("closeAndReopen")) {
                program.time.runDue();
            }
            ObjectNode state = LogFiles.state(program.log);
            if (!state.equals(before)) {
                operation.set("state", state);
                before = state;
            }
        }
        asked.set("stateAtClose", LogFiles.state(program.log));
        Logs.close(program.log);
        asked.set("closedFiles", LogFiles.listing(program.directory));
        LogFiles.copy(program.directory, folder.resolve("closed").resolve("topic-0"));
        return asked;
    }

    static LogConfig config(JsonNode settings) {
        Map<String, Object> values = new HashMap<>();
        settings.fields().forEachRemaining(each -> values.put(each.getKey(), each.getValue().asText()));
        if (LogConfig.configNames().contains(SMALL_SEGMENT_BYTES) && values.containsKey(SEGMENT_BYTES)) {
            values.put(SMALL_SEGMENT_BYTES, values.remove(SEGMENT_BYTES));
        }
        return new LogConfig(values);
    }

    static Optional<Uuid> topicId(JsonNode asked) {
        return asked.hasNonNull("topicId") ? Optional.of(Uuid.fromString(asked.get("topicId").asText())) : Optional.empty();
    }

    private ObjectNode result(ObjectNode operation) throws Exception {
        ObjectNode result = operation.objectNode();
        try {
            perform(operation, result);
        } catch (RuntimeException refusal) {
            result.removeAll();
            String name = refusal.getClass().getName();
            result.put("exception", MOVED.getOrDefault(name, name));
        }
        return result;
    }

    private void perform(ObjectNode operation, ObjectNode result) throws Exception {
        switch (operation.get("op").asText()) {
            case "appendAsLeader" -> appendAsLeader(operation, result);
            case "appendAsFollower" -> appendAsFollower(operation, result);
            case "sleep" -> time.sleep(operation.get("ms").asLong());
            case "roll" -> result.put("newBaseOffset", Logs.roll(log).baseOffset());
            case "flush" -> log.flush(true);
            case "truncateTo" -> withNames(result.put("truncated", log.truncateTo(offset(operation))));
            case "updateHighWatermark" -> result.put("highWatermark", log.updateHighWatermark(offset(operation)));
            case "incrementLogStartOffset" -> result.put("incremented", log.maybeIncrementLogStartOffset(
                    offset(operation), LogStartOffsetIncrementReason.ClientRecordDeletion));
            case "deleteOldSegments" -> withNames(result.put("deleted", log.deleteOldSegments()));
            case "takeProducerSnapshot" -> {
                log.takeProducerSnapshot();
                withNames(result);
            }
            case "closeAndReopen" -> closeAndReopen(operation, result);
            case "fetchOffsetByTimestamp" -> fetchOffsets(operation, result);
            case "endOffsetForEpoch" -> endOffsets(operation, result);
            case "clean" -> compaction.clean(operation, result);
            case "keepFiles" -> keepFiles(operation.get("as").asText(), result);
            default -> throw new IllegalStateException("no operation " + operation.get("op"));
        }
    }

    private void withNames(ObjectNode result) {
        result.set("files", LogFiles.names(directory));
    }

    /** Copy the files as they are, but for the reserved rest of the active segment's indexes. */
    private void keepFiles(String as, ObjectNode result) throws IOException {
        Path kept = folder.resolve(as).resolve("topic-0");
        LogFiles.copy(directory, kept);
        LogFiles.trimIndexes(log.activeSegment(), kept);
        result.set("files", LogFiles.listingWithoutRecords(kept.toFile()));
    }

    /** Return the offset that the operation names, and write it into the operation if it was a fraction of the log. */
    private long offset(ObjectNode operation) {
        if (operation.has("atFraction")) {
            long start = log.logStartOffset();
            double fraction = operation.remove("atFraction").asDouble();
            operation.put("offset", start + (long) Math.floor(fraction * (log.logEndOffset() - start)));
        }
        return operation.get("offset").asLong();
    }

    private void appendAsLeader(ObjectNode operation, ObjectNode result) throws IOException {
        long end = log.logEndOffset();
        LogAppendInfo info = Logs.appendAsLeader(log, LogBatches.build(operation.get("batch")),
                operation.get("leaderEpoch").asInt(), AppendOrigin.valueOf(operation.get("origin").asText()),
                (short) operation.path("transactionVersion").asInt(0));
        appended(operation, result, info, end);
    }

    private void appendAsFollower(ObjectNode operation, ObjectNode result) throws IOException {
        long end = log.logEndOffset();
        boolean fromEnd = operation.has("fromEnd");
        operation.remove("fromEnd");
        List<MemoryRecords> parts = new ArrayList<>();
        for (JsonNode each : operation.get("batches")) {
            ObjectNode batch = (ObjectNode) each;
            if (fromEnd) {
                batch.put("baseOffset", Math.max(0, batch.get("baseOffset").asLong() + end));
            }
            parts.add(LogBatches.build(batch));
        }
        int epoch = operation.get("batches").get(0).get("partitionLeaderEpoch").asInt();
        appended(operation, result, log.appendAsFollower(LogBatches.concatenate(parts), epoch), end);
    }

    private void appended(ObjectNode operation, ObjectNode result, LogAppendInfo info, long endBefore) throws IOException {
        result.put("firstOffset", info.firstOffset()).put("lastOffset", info.lastOffset());
        result.put("maxTimestamp", info.maxTimestamp()).put("duplicate", log.logEndOffset() == endBefore);
        if (operation.get("advanceHighWatermark").asBoolean()) {
            log.updateHighWatermark(log.logEndOffset());
        }
        if (filesHaveClockTimes) {
            log.activeSegment().setLastModified(time.milliseconds());
        }
    }

    private void closeAndReopen(ObjectNode operation, ObjectNode result) throws IOException {
        long end = log.logEndOffset();
        long start = log.logStartOffset();
        Logs.close(log);
        log = null;  // Until it is open again.
        long recoveryPoint = operation.get("recoveryPoint").asLong();
        long logStart = operation.get("logStart").asLong();
        log = Logs.open(directory, config, time, operation.get("clean").asBoolean(),
                recoveryPoint < 0 ? end : recoveryPoint, logStart < 0 ? start : logStart, topicId);
        withNames(result);
    }

    private void fetchOffsets(ObjectNode operation, ObjectNode result) {
        ArrayNode lookups = result.putArray("lookups");
        for (JsonNode timestamp : operation.remove("timestamps")) {
            ObjectNode lookup = lookups.addObject().put("timestamp", timestamp.asLong());
            Optional<TimestampAndOffset> found = Logs.fetchOffsetByTimestamp(log, timestamp.asLong());
            if (found.isEmpty()) {
                lookup.putNull("found");
                continue;
            }
            ObjectNode place = lookup.putObject("found");
            place.put("timestamp", found.get().timestamp).put("offset", found.get().offset);
            found.get().leaderEpoch.ifPresent(epoch -> place.put("leaderEpoch", epoch));
        }
    }

    private void endOffsets(ObjectNode operation, ObjectNode result) {
        ArrayNode lookups = result.putArray("lookups");
        for (JsonNode epoch : operation.remove("epochs")) {
            ObjectNode lookup = lookups.addObject().put("epoch", epoch.asInt());
            var found = log.endOffsetForEpoch(epoch.asInt());
            if (found.isEmpty()) {
                lookup.putNull("result");
            } else {
                lookup.putArray("result").add(Logs.epochOf(found.get())).add(found.get().offset());
            }
        }
    }
}
