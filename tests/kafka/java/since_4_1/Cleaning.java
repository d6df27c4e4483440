import java.io.File;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;

import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerAccess;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.PreCleanStats;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;

/** Calls of the cleaner and of its manager, which are Java since 4.1. */
final class Cleaning {
    private static final int BUFFER_BYTES = 1 << 20;

    private final UnifiedLog log;
    private final ManualTime time;
    private final LogCleanerManager manager;

    Cleaning(UnifiedLog log, ManualTime time) {
        this.log = log;
        this.time = time;
        ConcurrentMap<TopicPartition, UnifiedLog> logs = new ConcurrentHashMap<>();
        logs.put(log.topicPartition(), log);
        this.manager = new LogCleanerManager(List.of(log.parentDirFile()), logs, new LogDirFailureChannel(1));
    }

    /** Tell what there is to clean; false if there is nothing at all. */
    boolean describe(ObjectNode result) throws IOException {
        Optional<Long> checkpoint = Optional.ofNullable(manager.allCleanerCheckpoints().get(log.topicPartition()));
        long[] offsets = CleanerAccess.cleanableOffsets(log, checkpoint, time.milliseconds());
        LogToClean before = new LogToClean(log, offsets[0], offsets[1], false);
        result.put("checkpointBefore", checkpoint.orElse(null));
        result.put("firstDirtyOffset", before.firstDirtyOffset());
        result.put("firstUncleanableOffset", offsets[1]);
        result.put("cleanableRatio", before.cleanableRatio());
        result.put("cleanBytes", before.cleanBytes()).put("cleanableBytes", before.cleanableBytes());
        return before.totalBytes() != 0;
    }

    Optional<LogToClean> chosen() {
        return manager.grabFilthiestCompactedLog(time, new PreCleanStats());
    }

    void clean(LogToClean chosen, int mapBytes, double loadFactor, ObjectNode result) throws Exception {
        Work work = new Work(chosen, mapBytes, loadFactor, time);
        work.run();
        result.put("needCompactionNow", CleanerAccess.needCompactionNow(chosen)).put("endOffset", work.endOffset);
        work.tell(result);
    }

    void done(long endOffset) {
        manager.doneCleaning(log.topicPartition(), log.parentDirFile(), endOffset);
    }

    File checkpointFile() {
        return new File(log.parentDirFile(), LogCleanerManager.OFFSET_CHECKPOINT_FILE);
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
                    time, partition -> { });
        }

        /** Return the cleaning of a whole log, from offset 0 up to its active segment. */
        static Work whole(UnifiedLog log, ManualTime time, int mapBytes, double loadFactor) throws Exception {
            LogToClean all = new LogToClean(log, 0, log.activeSegment().baseOffset(), false);
            return new Work(all, mapBytes, loadFactor, time);
        }

        void run() throws Exception {
            Map.Entry<Long, CleanerStats> done = cleaner.clean(chosen);
            endOffset = done.getKey();
            stats = done.getValue();
        }

        void tell(ObjectNode result) {
            result.put("messagesRead", stats.messagesRead()).put("messagesWritten", stats.messagesWritten());
            result.put("bytesRead", stats.bytesRead()).put("bytesWritten", stats.bytesWritten());
            result.put("mapMessagesRead", stats.mapMessagesRead());
            result.put("invalidMessagesRead", stats.invalidMessagesRead());
        }
    }
}
