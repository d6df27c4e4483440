import java.io.File;
import java.util.Optional;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.FileRecords.TimestampAndOffset;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;

/** Calls of UnifiedLog that look different in other releases; here the log is Scala and epochs are an Option. */
final class Logs {
    private Logs() {
    }

    static UnifiedLog open(File directory, LogConfig config, ManualTime time, boolean clean, long recoveryPoint,
            long logStart, Optional<Uuid> topicId) {
        return UnifiedLog.apply(directory, config, logStart, recoveryPoint, time, new kafka.server.BrokerTopicStats(false), time,
                LogProgram.TRANSACTION_TIMEOUT_MS,
                new ProducerStateManagerConfig(LogProgram.PRODUCER_ID_EXPIRATION_MS, false),
                LogProgram.PRODUCER_ID_CHECK_MS, new LogDirFailureChannel(1), clean,
                scala.jdk.javaapi.OptionConverters.toScala(topicId),
                true, UnifiedLog.apply$default$15(), false, UnifiedLog.apply$default$17());
    }

    static LogAppendInfo appendAsLeader(UnifiedLog log, MemoryRecords records, int leaderEpoch, AppendOrigin origin,
            short transactionVersion) {
        return log.appendAsLeader(records, leaderEpoch, origin, MetadataVersion.latestProduction(),
                kafka.server.RequestLocal.NoCaching(), VerificationGuard.SENTINEL);
    }

    static LogSegment roll(UnifiedLog log) {
        return log.roll(scala.Option.empty());
    }

    static Optional<TimestampAndOffset> fetchOffsetByTimestamp(UnifiedLog log, long timestamp) {
        return scala.jdk.javaapi.OptionConverters.toJava(log.fetchOffsetByTimestamp(timestamp, scala.Option.empty()));
    }

    static LeaderEpochFileCache leaderEpochs(UnifiedLog log) {
        return log.leaderEpochCache().get();
    }

    static int epochOf(OffsetAndEpoch end) {
        return end.leaderEpoch();
    }

    static int recover(LogSegment segment, ProducerStateManager producers, LeaderEpochFileCache epochs)
            throws java.io.IOException {
        return segment.recover(producers, Optional.of(epochs));
    }
}
