import java.io.File;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;

import com.fasterxml.jackson.databind.node.ObjectNode;

//@ before 4.1
import kafka.log.Cleaner;
import kafka.log.CleanerStats;
import kafka.log.LogCleanerManager;
import kafka.log.LogToClean;
import kafka.log.OffsetsToClean;
import kafka.log.PreCleanStats;
import kafka.utils.Pool;

//@ end
import org.apache.kafka.common.TopicPartition;
//@ since 4.1
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerAccess;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.PreCleanStats;
//@ end
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;

/** Calls of the cleaner and of its manager, which are Scala before 4.1. */
final class Cleaning {
    private static final int BUFFER_BYTES = 1 << 20;

    private final UnifiedLog log;
    private final ManualTime time;
    private final LogCleanerManager manager;

    Cleaning(UnifiedLog log, ManualTime time) {
        this.log = log;
        this.time = time;
        //@ before 4.1
        Pool<TopicPartition, UnifiedLog> logs = new Pool<>(scala.Option.empty());
        //@ since 4.1
        ConcurrentMap<TopicPartition, UnifiedLog> logs = new ConcurrentHashMap<>();
        //@ end
        logs.put(log.topicPartition(), log);
        //@ before 4.1
        this.manager = new LogCleanerManager(
                scala.jdk.javaapi.CollectionConverters.asScala(List.of(log.parentDirFile())).toSeq(), logs,
                new LogDirFailureChannel(1));
        //@ since 4.1
        this.manager = new LogCleanerManager(List.of(log.parentDirFile()), logs, new LogDirFailureChannel(1));
        //@ end
    }

    /** Tell what there is to clean; false if there is nothing at all. */
    boolean describe(ObjectNode result) throws IOException {
        //@ before 4.1
        scala.Option<Object> checkpoint = manager.allCleanerCheckpoints().get(log.topicPartition());
        OffsetsToClean offsets = LogCleanerManager.cleanableOffsets(log, checkpoint, time.milliseconds());
        LogToClean before = new LogToClean(log.topicPartition(), log, offsets.firstDirtyOffset(),
                offsets.firstUncleanableDirtyOffset(), false);
        result.put("checkpointBefore", checkpoint.isEmpty() ? null : (Long) checkpoint.get());
        //@ since 4.1
        Optional<Long> checkpoint = Optional.ofNullable(manager.allCleanerCheckpoints().get(log.topicPartition()));
        long[] offsets = CleanerAccess.cleanableOffsets(log, checkpoint, time.milliseconds());
        LogToClean before = new LogToClean(log, offsets[0], offsets[1], false);
        result.put("checkpointBefore", checkpoint.orElse(null));
        //@ end
        result.put("firstDirtyOffset", before.firstDirtyOffset());
        //@ before 4.1
        result.put("firstUncleanableOffset", offsets.firstUncleanableDirtyOffset());
        //@ since 4.1
        result.put("firstUncleanableOffset", offsets[1]);
        //@ end
        result.put("cleanableRatio", before.cleanableRatio());
        result.put("cleanBytes", before.cleanBytes()).put("cleanableBytes", before.cleanableBytes());
        return before.totalBytes() != 0;
    }

    Optional<LogToClean> chosen() {
        //@ before 4.1
        return scala.jdk.javaapi.OptionConverters.toJava(manager.grabFilthiestCompactedLog(time, new PreCleanStats()));
        //@ since 4.1
        return manager.grabFilthiestCompactedLog(time, new PreCleanStats());
        //@ end
    }

    void clean(LogToClean chosen, int mapBytes, double loadFactor, ObjectNode result) throws Exception {
        Work work = new Work(chosen, mapBytes, loadFactor, time);
        work.run();
        //@ before 4.1
        result.put("needCompactionNow", chosen.needCompactionNow()).put("endOffset", work.endOffset);
        //@ since 4.1
        result.put("needCompactionNow", CleanerAccess.needCompactionNow(chosen)).put("endOffset", work.endOffset);
        //@ end
        work.tell(result);
    }

    void done(long endOffset) {
        manager.doneCleaning(log.topicPartition(), log.parentDirFile(), endOffset);
    }

    File checkpointFile() {
        //@ before 4.1
        return new File(log.parentDirFile(), manager.offsetCheckpointFile());
        //@ since 4.1
        return new File(log.parentDirFile(), LogCleanerManager.OFFSET_CHECKPOINT_FILE);
        //@ end
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
                    //@ before 4.1
                    time, partition -> scala.runtime.BoxedUnit.UNIT);
                    //@ since 4.1
                    time, partition -> { });
                    //@ end
        }

        /** Return the cleaning of a whole log, from offset 0 up to its active segment. */
        static Work whole(UnifiedLog log, ManualTime time, int mapBytes, double loadFactor) throws Exception {
            //@ before 4.1
            LogToClean all = new LogToClean(log.topicPartition(), log, 0, log.activeSegment().baseOffset(), false);
            //@ since 4.1
            LogToClean all = new LogToClean(log, 0, log.activeSegment().baseOffset(), false);
            //@ end
            return new Work(all, mapBytes, loadFactor, time);
        }

        void run() throws Exception {
            //@ before 4.1
            scala.Tuple2<Object, CleanerStats> done = cleaner.clean(chosen);
            endOffset = (Long) done._1();
            stats = done._2();
            //@ since 4.1
            Map.Entry<Long, CleanerStats> done = cleaner.clean(chosen);
            endOffset = done.getKey();
            stats = done.getValue();
            //@ end
        }

        void tell(ObjectNode result) {
            result.put("messagesRead", stats.messagesRead()).put("messagesWritten", stats.messagesWritten());
            result.put("bytesRead", stats.bytesRead()).put("bytesWritten", stats.bytesWritten());
            result.put("mapMessagesRead", stats.mapMessagesRead());
            result.put("invalidMessagesRead", stats.invalidMessagesRead());
        }
    }
}
