import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;

/** Batches as Kafka builds them from their description in golden files, and as it reads them, whole and damaged. */
final class LogBatches {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    private LogBatches() {
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

    /** Build each of the described batches; the answer has their bytes one by one. */
    static ArrayNode built(JsonNode input) {
        ArrayNode built = JSON.arrayNode();
        input.get("batches").forEach(batch -> built.add(LogFiles.base64(build(batch).buffer())));
        return built;
    }

    /** Read each of the byte strings to its end, or to the exception that ends it. */
    static ArrayNode read(JsonNode input) {
        ArrayNode outcomes = JSON.arrayNode();
        for (JsonNode data : input.get("data")) {
            ByteBuffer content = ByteBuffer.wrap(bytes(data));
            ObjectNode outcome = outcomes.addObject();
            ArrayNode batches = outcome.putArray("batches");
            try {
                int position = 0;
                for (MutableRecordBatch batch : MemoryRecords.readableRecords(content.duplicate()).batches()) {
                    batch.ensureValid();
                    batches.add(LogFiles.decoded(batch, position, content));
                    position += batch.sizeInBytes();
                }
            } catch (RuntimeException refusal) {
                outcome.put("exception", refusal.getClass().getSimpleName());
            }
        }
        return outcomes;
    }

    static MemoryRecords build(JsonNode batch) {
        if (batch.has("control")) {
            return marker(batch);
        }
        long baseOffset = batch.get("baseOffset").asLong();
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
                new ByteBufferOutputStream(1024), (byte) batch.get("magic").asInt(),
                Compression.of(CompressionType.forName(batch.get("compression").asText())).build(),
                TimestampType.forName(batch.get("timestampType").asText()), baseOffset,
                batch.path("logAppendTime").asLong(-1), batch.path("producerId").asLong(-1),
                (short) batch.path("producerEpoch").asInt(-1), batch.path("baseSequence").asInt(-1),
                batch.path("transactional").asBoolean(false), false,
                batch.path("partitionLeaderEpoch").asInt(-1), Integer.MAX_VALUE,
                batch.path("deleteHorizonMs").asLong(RecordBatch.NO_TIMESTAMP));
        long offset = baseOffset;
        for (JsonNode record : batch.get("records")) {
            offset = record.path("offset").asLong(offset);
            builder.appendWithOffset(offset, record.get("timestamp").asLong(), bytes(record.get("key")),
                    bytes(record.get("value")), headers(record.path("headers")));
            offset++;
        }
        return builder.build();
    }

    /** Return several batches one after another, as one append of a follower. */
    static MemoryRecords concatenate(List<MemoryRecords> parts) {
        ByteBuffer whole = ByteBuffer.allocate(parts.stream().mapToInt(MemoryRecords::sizeInBytes).sum());
        parts.forEach(part -> whole.put(part.buffer().duplicate()));
        whole.flip();
        return MemoryRecords.readableRecords(whole);
    }

    private static MemoryRecords marker(JsonNode batch) {
        EndTransactionMarker marker = new EndTransactionMarker(
                ControlRecordType.valueOf(batch.get("control").asText()), batch.get("coordinatorEpoch").asInt());
        return MemoryRecords.withEndTransactionMarker(
                batch.get("baseOffset").asLong(), batch.get("records").get(0).get("timestamp").asLong(),
                batch.path("partitionLeaderEpoch").asInt(-1), batch.get("producerId").asLong(),
                (short) batch.get("producerEpoch").asInt(), marker);
    }

    private static byte[] bytes(JsonNode text) {
        return text == null || text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    private static Header[] headers(JsonNode pairs) {
        List<Header> headers = new ArrayList<>();
        for (JsonNode pair : pairs) {
            headers.add(new RecordHeader(
                    ByteBuffer.wrap(pair.get(0).asText().getBytes(StandardCharsets.UTF_8)),
                    pair.get(1).isNull() ? null : ByteBuffer.wrap(bytes(pair.get(1)))));
        }
        return headers.toArray(new Header[0]);
    }
}
