//@ file since 4.1
package org.apache.kafka.storage.internals.log;

import java.io.IOException;
import java.util.Optional;

/** What the cleaner shows to its own package alone. */
public final class CleanerAccess {
    private CleanerAccess() {
    }

    /** Return the first dirty offset and the first that cannot be cleaned. */
    public static long[] cleanableOffsets(UnifiedLog log, Optional<Long> checkpoint, long nowMs) throws IOException {
        LogCleanerManager.OffsetsToClean offsets = LogCleanerManager.cleanableOffsets(log, checkpoint, nowMs);
        return new long[] {offsets.firstDirtyOffset(), offsets.firstUncleanableDirtyOffset()};
    }

    public static boolean needCompactionNow(LogToClean chosen) {
        return chosen.needCompactionNow();
    }
}
