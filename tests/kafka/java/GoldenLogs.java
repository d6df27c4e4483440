import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Optional;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/** A log that is written and closed, and one that is opened again, cut or read: for kinds `truncate` and `recovery`. */
final class GoldenLogs {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final long STEP_MS = 10;

    private GoldenLogs() {
    }

    /** Append the batches as leader, some time apart; tell the state, close the log, and list its files. */
    static ObjectNode close(JsonNode input) throws IOException {
        File directory = directory(input);
        ManualTime time = new ManualTime(input.get("nowMs").asLong());
        UnifiedLog log = Logs.open(directory, LogProgram.config(input.get("config")), time, true, 0, 0, Optional.empty());
        for (JsonNode batch : input.get("batches")) {
            Logs.appendAsLeader(log, LogBatches.build(batch), batch.path("leaderEpoch").asInt(0), AppendOrigin.CLIENT,
                    (short) 0);
            log.updateHighWatermark(log.logEndOffset());
            time.sleep(STEP_MS);
        }
        ObjectNode told = JSON.objectNode();
        told.set("initialState", LogFiles.state(log));
        Logs.close(log);
        told.set("initialFiles", LogFiles.listing(directory));
        return told;
    }

    /** Open the directory, cut the log if that is asked, and tell the state, the names and the sizes. */
    static ObjectNode open(JsonNode input) throws IOException {
        File directory = directory(input);
        ManualTime time = new ManualTime(input.get("nowMs").asLong());
        UnifiedLog log = Logs.open(directory, LogProgram.config(input.get("config")), time,
                input.get("clean").asBoolean(), input.get("recoveryPoint").asLong(), input.path("logStart").asLong(0), Optional.empty());
        ObjectNode told = JSON.objectNode();
        if (input.has("truncateTo")) {
            told.put("truncated", log.truncateTo(input.get("truncateTo").asLong()));
        }
        time.runDue();
        told.put("logEndOffset", log.logEndOffset());
        told.set("state", LogFiles.state(log));
        told.set("files", LogFiles.names(directory));
        File epochs = new File(directory, "leader-epoch-checkpoint");
        told.put("leaderEpochCheckpoint", epochs.exists() ? Files.readString(epochs.toPath(), StandardCharsets.UTF_8) : null);
        if (input.path("read").asBoolean()) {
            told.set("segments", segmentsRead(log));
        }
        Logs.close(log);
        told.set("closedFiles", closedFiles(directory));
        return told;
    }

    /** A row for each segment, after its batches were read as they are in memory, which refuses an unknown magic. */
    private static ArrayNode segmentsRead(UnifiedLog log) throws IOException {
        ArrayNode rows = JSON.arrayNode();
        for (LogSegment segment : log.logSegments()) {
            ByteBuffer content = ByteBuffer.wrap(Files.readAllBytes(segment.log().file().toPath()), 0, segment.size());
            for (MutableRecordBatch batch : MemoryRecords.readableRecords(content).batches()) {
                batch.magic();
            }
            rows.addArray().add(segment.baseOffset()).add(segment.size())
                    .add(segment.offsetIndex().entries()).add(segment.timeIndex().entries());
        }
        return rows;
    }

    private static ArrayNode closedFiles(File directory) throws IOException {
        ArrayNode rows = JSON.arrayNode();
        for (JsonNode name : LogFiles.names(directory)) {
            byte[] content = Files.readAllBytes(new File(directory, name.asText()).toPath());
            rows.addArray().add(name.asText()).add(content.length).add(LogFiles.sha256(content));
        }
        return rows;
    }

    private static File directory(JsonNode input) throws IOException {
        File directory = new File(input.get("directory").asText());
        Files.createDirectories(directory.toPath());
        return directory;
    }
}
