import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Base64;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

//@ before 4.4
import kafka.log.LogManager;

//@ end
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
//@ since 4.4
import org.apache.kafka.storage.internals.log.LogManager;
//@ end
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/** Golden cases of kind `logdir`: one start of LogManager on a directory, what is done then, and its shutdown. */
final class LogDirs {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final long TASK_MS = 3_600_000;

    private final LogManager manager;
    private final ManualTime time;

    private LogDirs(JsonNode input) throws Exception {
        time = new ManualTime(input.get("nowMs").asLong());
        LogConfig config = LogProgram.config(input.get("config"));
        manager = started(new File(input.get("root").asText()), config, time);
    }

    /** Start; make the logs that are given, if any; tell the states; delete a log, if asked; shut down. */
    static ObjectNode run(JsonNode input) throws Exception {
        LogDirs running = new LogDirs(input);
        ObjectNode told = JSON.objectNode();
        for (JsonNode partition : input.path("made")) {
            running.make(partition);
        }
        ArrayNode states = told.putArray("states");
        for (JsonNode partition : input.get("partitions")) {
            states.add(running.state(partition));
        }
        Path root = Path.of(input.get("root").asText());
        told.put("cleanShutdownFileStillThere", Files.exists(root.resolve(".kafka_cleanshutdown")));
        if (input.has("deleted")) {
            running.manager.asyncDelete(partition(input.get("deleted")), false, true, false);
            told.set("listing", LogFiles.names(root.toFile()));
            told.put("recoveryPoints", Files.readString(root.resolve("recovery-point-offset-checkpoint")));
        }
        running.manager.shutdown(input.get("brokerEpoch").asLong());
        return told;
    }

    private void make(JsonNode given) throws Exception {
        Optional<Uuid> topicId = Optional.of(Uuid.fromString(given.get("topicId").asText()));
        UnifiedLog log = manager.getOrCreateLog(partition(given), true, false,
                //@ before 4.1
                scala.jdk.javaapi.OptionConverters.toScala(topicId), scala.Option.empty()
                //@ since 4.1 before 4.4
                topicId, scala.Option.empty()
                //@ since 4.4
                topicId, Optional.empty()
                //@ end
                );
        ByteBuffer records = ByteBuffer.wrap(Base64.getDecoder().decode(given.get("records").asText()));
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(records).batches()) {
            ByteBuffer one = ByteBuffer.allocate(batch.sizeInBytes());
            batch.writeTo(one);
            one.flip();
            log.appendAsFollower(MemoryRecords.readableRecords(one), batch.partitionLeaderEpoch());
            time.runDue();
        }
        log.updateHighWatermark(log.logEndOffset());
        log.maybeIncrementLogStartOffset(
                given.get("logStartOffset").asLong(), LogStartOffsetIncrementReason.ClientRecordDeletion);
        time.runDue();
    }

    private ObjectNode state(JsonNode given) throws Exception {
        UnifiedLog log = manager.getLog(partition(given), false).get();
        ObjectNode told = JSON.objectNode().put("topic", given.get("topic").asText());
        told.put("partition", given.get("partition").asInt()).put("topicId", given.get("topicId").asText());
        told.set("state", LogFiles.state(log));
        return told;
    }

    private static TopicPartition partition(JsonNode given) {
        return new TopicPartition(given.get("topic").asText(), given.get("partition").asInt());
    }

    /** Start a manager without a cleaner. What it takes differs between releases; here the types tell what is what. */
    private static LogManager started(File root, LogConfig config, ManualTime time) throws Exception {
        Constructor<?> made = LogManager.class.getConstructors()[0];
        Class<?>[] types = made.getParameterTypes();
        Deque<Integer> integers = new ArrayDeque<>(List.of(
                1, LogProgram.TRANSACTION_TIMEOUT_MS, LogProgram.PRODUCER_ID_CHECK_MS));
        Deque<Object> directories = new ArrayDeque<>(List.of(
                //@ before 4.4
                sequence(List.of(root)), sequence(List.of())
                //@ since 4.4
                List.of(root), List.of()
                //@ end
                ));
        long flags = Arrays.stream(types).filter(type -> type == boolean.class).count();
        Object[] given = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
            Class<?> type = types[i];
            if (type == int.class) {
                given[i] = integers.remove();
            } else if (type == long.class) {
                given[i] = TASK_MS;
            } else if (type == boolean.class) {
                given[i] = flags-- > 1;  // Up to 4.0 partition.metadata is kept; last, there is no remote storage.
            } else if (type == scala.collection.Seq.class || type == List.class) {
                given[i] = directories.remove();
            } else if (type == LogConfig.class) {
                given[i] = config;
            } else if (type == CleanerConfig.class) {
                given[i] = new CleanerConfig(false);
            } else if (type == ProducerStateManagerConfig.class) {
                given[i] = new ProducerStateManagerConfig(LogProgram.PRODUCER_ID_EXPIRATION_MS, false);
            } else if (type == MetadataVersion.class) {
                given[i] = MetadataVersion.latestProduction();
            } else if (type == LogDirFailureChannel.class) {
                given[i] = new LogDirFailureChannel(1);
            } else if (type.isInstance(time)) {
                given[i] = time;
            } else if (type.getSimpleName().equals("BrokerTopicStats")) {
                given[i] = type.getConstructor(boolean.class).newInstance(false);
            } else if (type.getSimpleName().equals("ConfigRepository")) {
                given[i] = Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
                        (proxy, method, arguments) -> new Properties());
            }
        }
        LogManager manager = (LogManager) made.newInstance(given);
        //@ before 4.4
        manager.startupWithConfigOverrides(config, new scala.collection.immutable.HashMap<>(), log -> false);
        //@ since 4.4
        manager.startup(Set.of(), log -> false);
        //@ end
        return manager;
    }

    //@ before 4.4
    private static Object sequence(List<?> items) {
        return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
    }
    //@ end
}
