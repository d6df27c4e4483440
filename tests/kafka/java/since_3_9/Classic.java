import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;

import org.apache.kafka.admin.AdminUtils;
import org.apache.kafka.admin.BrokerMetadata;

/** The classic placer, AdminUtils, which 4.0 is the last release to have. */
final class Classic {
    private Classic() {
    }

    /** The unseeded generator inside AdminUtils, which is not public. */
    static Random generator() throws ReflectiveOperationException {
        Field field = AdminUtils.class.getDeclaredField("RAND");
        field.setAccessible(true);
        return (Random) field.get(null);
    }

    /** Brokers as AdminUtils takes them, so that a timed call need not make them. */
    static Object described(List<Placers.Broker> brokers) {
        List<BrokerMetadata> described = new ArrayList<>(brokers.size());
        for (Placers.Broker broker : brokers) {
            described.add(new BrokerMetadata(broker.id, Optional.ofNullable(broker.rack)));
        }
        return described;
    }

    @SuppressWarnings("unchecked")
    static Map<Integer, List<Integer>> placed(
            Object described, int partitions, int factor, int fixedStartIndex, int startPartition) {
        return AdminUtils.assignReplicasToBrokers(
                (List<BrokerMetadata>) described, partitions, factor, fixedStartIndex, startPartition);
    }

    /** Rows of the partitions in ascending order of id. */
    static Map<Integer, List<Integer>> rows(
            List<Placers.Broker> brokers, int partitions, int factor, int fixedStartIndex, int startPartition) {
        return new TreeMap<>(placed(described(brokers), partitions, factor, fixedStartIndex, startPartition));
    }

    static List<Integer> rackAlternated(List<Placers.Broker> brokers) {
        Map<Integer, String> racks = new HashMap<>();
        for (Placers.Broker broker : brokers) {
            racks.put(broker.id, broker.rack);
        }
        return AdminUtils.getRackAlternatedBrokerList(racks);
    }
}
