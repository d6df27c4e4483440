import java.io.File;
import java.io.IOException;
import java.util.Map;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;

/** Offset checkpoints, which are Java since 4.0. */
final class Checkpoints {
    private Checkpoints() {
    }

    static void write(File file, Map<TopicPartition, Long> offsets) throws IOException {
        new OffsetCheckpointFile(file, new LogDirFailureChannel(1)).write(offsets);
    }

    static Map<TopicPartition, Long> read(File file) throws IOException {
        return new OffsetCheckpointFile(file, new LogDirFailureChannel(1)).read();
    }
}
