import java.io.File;
import java.util.HashMap;
import java.util.Map;

import kafka.server.checkpoints.OffsetCheckpointFile;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;

/** Offset checkpoints, which are Scala in 3.9. */
final class Checkpoints {
    private Checkpoints() {
    }

    static void write(File file, Map<TopicPartition, Long> offsets) {
        Map<TopicPartition, Object> given = new java.util.LinkedHashMap<>(offsets);
        new OffsetCheckpointFile(file, new LogDirFailureChannel(1))
                .write(scala.jdk.javaapi.CollectionConverters.asScala(given));
    }

    static Map<TopicPartition, Long> read(File file) {
        Map<TopicPartition, Long> offsets = new HashMap<>();
        scala.jdk.javaapi.CollectionConverters.asJava(new OffsetCheckpointFile(file, new LogDirFailureChannel(1)).read())
                .forEach((partition, offset) -> offsets.put(partition, (Long) offset));
        return offsets;
    }
}
