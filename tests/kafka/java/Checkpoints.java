import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.metadata.properties.MetaPropertiesVersion;
import org.apache.kafka.metadata.properties.PropertiesUtils;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;

/** Golden cases of kind `checkpoints`: small files that Kafka writes, and what it reads in malformed ones. */
final class Checkpoints {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    private Checkpoints() {
    }

    /** Write a checkpoint or metadata file of the given content. */
    static JsonNode write(JsonNode input) throws Exception {
        File file = new File(input.get("path").asText());
        Files.createDirectories(file.getParentFile().toPath());
        String name = file.getName();
        if (name.startsWith("leader-epoch-checkpoint")) {
            List<EpochEntry> entries = new ArrayList<>();
            input.get("entries").forEach(row -> entries.add(new EpochEntry(row.get(0).asInt(), row.get(1).asLong())));
            new LeaderEpochCheckpointFile(file, new LogDirFailureChannel(1)).write(entries);
        } else if (name.equals("partition.metadata")) {
            PartitionMetadataFile metadata = new PartitionMetadataFile(file, new LogDirFailureChannel(1));
            metadata.record(Uuid.fromString(input.get("topicId").asText()));
            metadata.maybeFlush();
        } else if (name.equals("meta.properties")) {
            metaProperties(input.get("entries"), file);
        } else if (name.equals(".kafka_cleanshutdown")) {
            new CleanShutdownFileHandler(file.getParent()).write(input.get("brokerEpoch").asLong());
        } else {
            new OffsetCheckpointFile(file, new LogDirFailureChannel(1)).write(offsets(input.get("entries")));
        }
        return JSON.objectNode();
    }

    /** Read a text as an offset checkpoint: its entries, or the refusal and its cause. */
    static JsonNode read(JsonNode input) throws IOException {
        File file = new File(input.get("path").asText());
        Files.createDirectories(file.getParentFile().toPath());
        Files.writeString(file.toPath(), input.get("text").asText());
        ObjectNode told = JSON.objectNode();
        try {
            ArrayNode entries = JSON.arrayNode();
            new OffsetCheckpointFile(file, new LogDirFailureChannel(1)).read().forEach(
                    (partition, offset) -> entries.addArray().add(partition.topic()).add(partition.partition()).add(offset));
            told.set("entries", entries);
        } catch (RuntimeException refusal) {
            Throwable cause = refusal.getCause();
            told.put("exception", refusal.getClass().getSimpleName());
            told.put("cause", cause == null ? null : cause.getClass().getSimpleName());
        }
        return told;
    }

    private static Map<TopicPartition, Long> offsets(JsonNode entries) {
        Map<TopicPartition, Long> offsets = new LinkedHashMap<>();
        entries.forEach(row ->
                offsets.put(new TopicPartition(row.get(0).asText(), row.get(1).asInt()), row.get(2).asLong()));
        return offsets;
    }

    private static void metaProperties(JsonNode entries, File file) throws IOException {
        Map<String, String> given = new LinkedHashMap<>();
        entries.forEach(row -> given.put(row.get(0).asText(), row.get(1).asText()));
        MetaProperties.Builder builder = new MetaProperties.Builder()
                .setVersion(MetaPropertiesVersion.fromNumberString(given.get("version")))
                .setClusterId(given.get("cluster.id")).setNodeId(Integer.parseInt(given.get("node.id")));
        if (given.containsKey("directory.id")) {
            builder.setDirectoryId(Uuid.fromString(given.get("directory.id")));
        }
        Properties properties = builder.build().toProperties();
        PropertiesUtils.writePropertiesFile(properties, Path.of(file.getPath()).toString(), false);
    }
}
