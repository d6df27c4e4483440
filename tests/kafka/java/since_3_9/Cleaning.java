import java.io.File;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

import com.fasterxml.jackson.databind.node.ObjectNode;

import kafka.log.Cleaner;
import kafka.log.CleanerStats;
import kafka.log.LogCleanerManager;
import kafka.log.LogToClean;
import kafka.log.OffsetsToClean;
import kafka.log.PreCleanStats;
import kafka.utils.Pool;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;

/** Calls of the cleaner and of its manager, which are Scala up to 4.0. */
final class Cleaning {
    private static final int BUFFER_BYTES = 1 << 20;

    private final UnifiedLog log;
    private final ManualTime time;
    private final LogCleanerManager manager;

    Cleaning(UnifiedLog log, ManualTime time) {
        this.log = log;
        this.time = time;
        Pool<TopicPartition, UnifiedLog> logs = new Pool<>(scala.Option.empty());
        logs.put(log.topicPartition(), log);
        this.manager = new LogCleanerManager(
                scala.jdk.javaapi.CollectionConverters.asScala(List.of(log.parentDirFile())).toSeq(), logs,
                new LogDirFailureChannel(1));
    }

    /** Tell what there is to clean; false if there is nothing at all. */
    boolean describe(ObjectNode result) {
        scala.Option<Object> checkpoint = manager.allCleanerCheckpoints().get(log.topicPartition());
        OffsetsToClean offsets = LogCleanerManager.cleanableOffsets(log, checkpoint, time.milliseconds());
        LogToClean before = new LogToClean(log.topicPartition(), log, offsets.firstDirtyOffset(),
                offsets.firstUncleanableDirtyOffset(), false);
        result.put("checkpointBefore", checkpoint.isEmpty() ? null : (Long) checkpoint.get());
        result.put("firstDirtyOffset", before.firstDirtyOffset());
        result.put("firstUncleanableOffset", offsets.firstUncleanableDirtyOffset());
        result.put("cleanableRatio", before.cleanableRatio());
        result.put("cleanBytes", before.cleanBytes()).put("cleanableBytes", before.cleanableBytes());
        return before.totalBytes() != 0;
    }

    Optional<LogToClean> chosen() {
        return scala.jdk.javaapi.OptionConverters.toJava(manager.grabFilthiestCompactedLog(time, new PreCleanStats()));
    }

    void clean(LogToClean chosen, int mapBytes, double loadFactor, ObjectNode result) throws Exception {
        Work work = new Work(chosen, mapBytes, loadFactor, time);
        work.run();
        result.put("needCompactionNow", chosen.needCompactionNow()).put("endOffset", work.endOffset);
        work.tell(result);
    }

    void done(long endOffset) {
        manager.doneCleaning(log.topicPartition(), log.parentDirFile(), endOffset);
    }

    File checkpointFile() {
        return new File(log.parentDirFile(), manager.offsetCheckpointFile());
    }

    /** One cleaning, made beforehand so that it can be timed. */
    static final class Work {
        private final Cleaner cleaner;
        private final LogToClean chosen;
        private CleanerStats stats;
        long endOffset;

        Work(LogToClean chosen, int mapBytes, double loadFactor, ManualTime time) throws Exception {
            this.chosen = chosen;
            this.cleaner = new Cleaner(0, new SkimpyOffsetMap(mapBytes), BUFFER_BYTES, BUFFER_BYTES, loadFactor,
                    new Throttler(Double.MAX_VALUE, TimeUnit.DAYS.toMillis(1), "cleaner", "bytes", time),
                    time, partition -> scala.runtime.BoxedUnit.UNIT);
        }

        /** Return the cleaning of a whole log, from offset 0 up to its active segment. */
        static Work whole(UnifiedLog log, ManualTime time, int mapBytes, double loadFactor) throws Exception {
            LogToClean all = new LogToClean(log.topicPartition(), log, 0, log.activeSegment().baseOffset(), false);
            return new Work(all, mapBytes, loadFactor, time);
        }

        void run() throws Exception {
            scala.Tuple2<Object, CleanerStats> done = cleaner.clean(chosen);
            endOffset = (Long) done._1();
            stats = done._2();
        }

        void tell(ObjectNode result) {
            result.put("messagesRead", stats.messagesRead()).put("messagesWritten", stats.messagesWritten());
            result.put("bytesRead", stats.bytesRead()).put("bytesWritten", stats.bytesWritten());
            result.put("mapMessagesRead", stats.mapMessagesRead());
            result.put("invalidMessagesRead", stats.invalidMessagesRead());
        }
    }
}
