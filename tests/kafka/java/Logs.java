import java.io.File;
import java.io.IOException;
import java.util.Optional;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.FileRecords.TimestampAndOffset;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Calls of UnifiedLog and of its segments that differ between releases: the log is Java since 4.1. */
final class Logs {
    private Logs() {
    }

    static UnifiedLog open(File directory, LogConfig config, ManualTime time, boolean clean, long recoveryPoint,
            long logStart, Optional<Uuid> topicId) throws IOException {
        //@ before 4.1
        return UnifiedLog.apply(directory, config, logStart, recoveryPoint, time, new BrokerTopicStats(), time,
                LogProgram.TRANSACTION_TIMEOUT_MS,
                new ProducerStateManagerConfig(LogProgram.PRODUCER_ID_EXPIRATION_MS, false),
                LogProgram.PRODUCER_ID_CHECK_MS, new LogDirFailureChannel(1), clean,
                scala.jdk.javaapi.OptionConverters.toScala(topicId),
                true, UnifiedLog.apply$default$15(), false, UnifiedLog.apply$default$17());
        //@ since 4.1
        return UnifiedLog.create(directory, config, logStart, recoveryPoint, time, new BrokerTopicStats(), time,
                LogProgram.TRANSACTION_TIMEOUT_MS,
                new ProducerStateManagerConfig(LogProgram.PRODUCER_ID_EXPIRATION_MS, false),
                LogProgram.PRODUCER_ID_CHECK_MS, new LogDirFailureChannel(1), clean,
                topicId);
        //@ end
    }

    static LogAppendInfo appendAsLeader(UnifiedLog log, MemoryRecords records, int leaderEpoch, AppendOrigin origin,
            short transactionVersion) {
        return log.appendAsLeader(records, leaderEpoch, origin, RequestLocal.noCaching(), VerificationGuard.SENTINEL
                //@ since 4.2
                , transactionVersion
                //@ end
                );
    }

    /** Close a log as a shutdown does: since 4.4 closing alone leaves the active segment's indexes at their full size. */
    static void close(UnifiedLog log) throws IOException {
        //@ since 4.4
        log.prepareActiveSegmentForClose();
        //@ end
        log.close();
    }

    static LogSegment roll(UnifiedLog log) throws IOException {
        //@ before 4.1
        return log.roll(scala.Option.empty());
        //@ since 4.1
        return log.roll(Optional.empty());
        //@ end
    }

    static Optional<TimestampAndOffset> fetchOffsetByTimestamp(UnifiedLog log, long timestamp) {
        //@ before 4.1
        return log.fetchOffsetByTimestamp(timestamp, scala.Option.empty()).timestampAndOffsetOpt();
        //@ since 4.1
        return log.fetchOffsetByTimestamp(timestamp, Optional.empty()).timestampAndOffsetOpt();
        //@ end
    }

    static Optional<TimestampAndOffset> findOffsetByTimestamp(LogSegment segment, long timestamp, long startingOffset)
            throws IOException {
        return segment.findOffsetByTimestamp(timestamp, startingOffset
                //@ since 4.4
                , Integer.MAX_VALUE
                //@ end
                );
    }

    static int epochOf(OffsetAndEpoch end) {
        //@ before 4.1
        return end.leaderEpoch();
        //@ since 4.1
        return end.epoch();
        //@ end
    }
}
