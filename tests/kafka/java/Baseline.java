import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.List;
import java.util.Map;
import java.util.Random;

import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.TopicAssignment;

/**
 * CPU time of Kafka's own placers: what one thread spends on one call, the input made beforehand
 * and the result discarded. Collecting garbage runs on other threads and is not counted, in Kafka's favour.
 */
final class Baseline {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** Read from every result, so that no work can be optimised away. */
    private long checksum;

    long classicNanos(List<Placers.Broker> brokers, int partitions, int factor) {
        Object described = Classic.described(brokers);
        long begin = THREADS.getCurrentThreadCpuTime();
        Map<Integer, List<Integer>> placed = Classic.placed(described, partitions, factor, 0, 0);
        long nanos = THREADS.getCurrentThreadCpuTime() - begin;
        checksum += placed.get(partitions - 1).get(factor - 1);
        return nanos;
    }

    long stripedNanos(List<Placers.Broker> brokers, int partitions, int factor) {
        ClusterDescriber cluster = Placers.describer(brokers);
        Random random = new Random(1);
        long begin = THREADS.getCurrentThreadCpuTime();
        TopicAssignment placed = Placers.striped(random, cluster, 0, partitions, factor);
        long nanos = THREADS.getCurrentThreadCpuTime() - begin;
        checksum += placed.assignments().get(partitions - 1).replicas().get(factor - 1);
        return nanos;
    }

    long checksum() {
        return checksum;
    }
}
