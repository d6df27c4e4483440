import java.nio.ByteBuffer;
import java.util.Base64;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/** Kafka's image of a metadata log: records go in, the records that it writes of the image come out, all in Base64. */
final class MetadataImages {
    private static final ObjectMapper JSON = new ObjectMapper();

    private MetadataImages() {
    }

    /** Replay `records` one by one, as a broker does that gets them in batches of one; `records` are the answer, too. */
    static ArrayNode replay(ObjectNode request) {
        MetadataImage image = MetadataImage.EMPTY;
        long offset = 0;
        for (JsonNode each : request.get("records")) {
            byte[] value = Base64.getDecoder().decode(each.asText());
            ApiMessageAndVersion record =
                MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(ByteBuffer.wrap(value)), value.length);
            MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
            delta.replay(record.message());
            image = delta.apply(new MetadataProvenance(offset++, 0, 0, true));
        }
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(MetadataVersion.latestProduction())
                .setEligibleLeaderReplicasEnabled(true).build());
        ArrayNode records = JSON.createArrayNode();
        for (ApiMessageAndVersion record : writer.records()) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
            MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(buffer));
            records.add(Base64.getEncoder().encodeToString(buffer.array()));
        }
        return records;
    }
}
