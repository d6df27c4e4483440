import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;

/** Golden cases of kind `batches` and `bitflips`: one file of batches, decoded, and with each bit flipped in turn. */
final class GoldenBatches {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    private GoldenBatches() {
    }

    /** Write the described batches into a file of the case's folder; return it with its batches decoded. */
    static ObjectNode batches(JsonNode input) throws IOException {
        byte[] content = written(input);
        ObjectNode expected = JSON.objectNode().put("file", input.get("file").asText());
        expected.put("size", content.length).put("sha256", LogFiles.sha256(content));
        expected.set("batches", LogFiles.batches(path(input).toFile(), ByteBuffer.wrap(content)));
        return expected;
    }

    /** Write the one batch; return a row for each byte: its place, and what comes of each bit flipped, the lowest first. */
    static ArrayNode bitFlips(JsonNode input) throws IOException {
        byte[] content = written(input);
        ArrayNode outcomes = JSON.arrayNode();
        for (int place = 0; place < content.length; place++) {
            ArrayNode row = outcomes.addArray().add(place);
            for (int bit = 0; bit < Byte.SIZE; bit++) {
                byte[] damaged = content.clone();
                damaged[place] ^= (byte) (1 << bit);
                row.add(outcome(damaged));
            }
        }
        return outcomes;
    }

    private static String outcome(byte[] damaged) {
        try {
            int count = 0;
            for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(damaged)).batches()) {
                batch.ensureValid();
                for (Record record : batch) {
                    record.ensureValid();
                }
                count++;
            }
            return count > 0 ? "ok" : "none";
        } catch (RuntimeException refusal) {
            return refusal.getClass().getSimpleName();
        }
    }

    private static byte[] written(JsonNode input) throws IOException {
        List<MemoryRecords> parts = new ArrayList<>();
        input.path("batches").forEach(batch -> parts.add(LogBatches.build(batch)));
        input.path("emptied").forEach(batch -> parts.add(emptied(batch)));
        ByteBuffer whole = LogBatches.concatenate(parts).buffer();
        byte[] content = new byte[whole.remaining()];
        whole.get(content);
        Files.createDirectories(path(input).getParent());
        Files.write(path(input), content);
        return content;
    }

    /** A batch without records, as the cleaner leaves it, from its decoded form. */
    private static MemoryRecords emptied(JsonNode batch) {
        ByteBuffer buffer = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(buffer, (byte) batch.get("magic").asInt(),
                batch.get("producerId").asLong(), (short) batch.get("producerEpoch").asInt(),
                batch.get("baseSequence").asInt(), batch.get("baseOffset").asLong(), batch.get("lastOffset").asLong(),
                batch.get("partitionLeaderEpoch").asInt(), TimestampType.forName(batch.get("timestampType").asText()),
                batch.get("maxTimestamp").asLong(), batch.get("transactional").asBoolean(),
                batch.get("control").asBoolean());
        buffer.flip();
        return MemoryRecords.readableRecords(buffer);
    }

    private static Path path(JsonNode input) {
        return Path.of(input.get("folder").asText()).resolve(input.get("file").asText());
    }
}
