import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/** Batches as Kafka reads them, in the form of the golden files, and the exception that ends the reading. */
final class LogReads {
    private static final ObjectMapper JSON = new ObjectMapper();

    private LogReads() {
    }

    /** Build each of the batches that the request describes; the answer has their bytes one by one. */
    static ObjectNode build(ObjectNode request) {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode built = answer.putArray("built");
        for (JsonNode batch : request.get("batches")) {
            ByteBuffer buffer = LogBatches.build(batch).buffer().duplicate();
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            built.add(Base64.getEncoder().encodeToString(bytes));
        }
        return answer;
    }

    /** Read each of the request's byte strings to its end, or to the exception that ends it. */
    static ObjectNode read(ObjectNode request) {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode outcomes = answer.putArray("outcomes");
        for (JsonNode data : request.get("data")) {
            outcomes.add(outcome(Base64.getDecoder().decode(data.asText())));
        }
        return answer;
    }

    private static ObjectNode outcome(byte[] data) {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode batches = answer.putArray("batches");
        try {
            int position = 0;
            for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batches()) {
                batch.ensureValid();
                batches.add(batch(batch, position));
                position += batch.sizeInBytes();
            }
        } catch (RuntimeException refusal) {
            answer.put("exception", refusal.getClass().getSimpleName());
        }
        return answer;
    }

    private static ObjectNode batch(RecordBatch batch, int position) {
        ObjectNode node = JSON.createObjectNode();
        node.put("position", position).put("sizeInBytes", batch.sizeInBytes());
        node.put("magic", batch.magic()).put("compression", batch.compressionType().name);
        node.put("timestampType", batch.timestampType().name).put("maxTimestamp", batch.maxTimestamp());
        if (batch.magic() >= RecordBatch.MAGIC_VALUE_V2) {
            node.put("baseOffset", batch.baseOffset());
            node.put("count", batch.countOrNull()).put("producerId", batch.producerId());
            node.put("producerEpoch", batch.producerEpoch()).put("baseSequence", batch.baseSequence());
            node.put("lastSequence", batch.lastSequence()).put("partitionLeaderEpoch", batch.partitionLeaderEpoch());
            node.put("transactional", batch.isTransactional()).put("control", batch.isControlBatch());
        }
        node.put("crc", batch.checksum()).put("lastOffset", batch.lastOffset()).put("nextOffset", batch.nextOffset());
        List<ObjectNode> records = new ArrayList<>();
        for (Record record : batch) {
            records.add(record(record));
        }
        node.set("records", JSON.valueToTree(records));
        return node;
    }

    private static ObjectNode record(Record record) {
        ObjectNode node = JSON.createObjectNode();
        node.put("offset", record.offset()).put("timestamp", record.timestamp());
        node.put("key", encoded(record.key())).put("value", encoded(record.value()));
        if (record.sequence() != RecordBatch.NO_SEQUENCE) {
            node.put("sequence", record.sequence());
        }
        if (record.headers().length > 0) {
            ArrayNode headers = node.putArray("headers");
            for (Header header : record.headers()) {
                ByteBuffer value = header.value() == null ? null : ByteBuffer.wrap(header.value());
                String key = Base64.getEncoder().encodeToString(header.key().getBytes(StandardCharsets.UTF_8));
                headers.addArray().add(key).add(encoded(value));
            }
        }
        return node;
    }

    private static String encoded(ByteBuffer value) {
        if (value == null) {
            return null;
        }
        byte[] bytes = new byte[value.remaining()];
        value.duplicate().get(bytes);
        return Base64.getEncoder().encodeToString(bytes);
    }
}
