import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;

/** A leader's append, which knows nothing of transaction versions before 4.2. */
final class Appends {
    private Appends() {
    }

    static LogAppendInfo asLeader(UnifiedLog log, MemoryRecords records, int leaderEpoch, AppendOrigin origin,
            short transactionVersion) {
        return log.appendAsLeader(records, leaderEpoch, origin, RequestLocal.noCaching(), VerificationGuard.SENTINEL);
    }
}
