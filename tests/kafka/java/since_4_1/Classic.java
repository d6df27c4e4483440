import java.util.List;
import java.util.Map;
import java.util.Random;

/** No classic placer: AdminUtils went in 4.1, where every caller uses StripedReplicaPlacer. */
final class Classic {
    private Classic() {
    }

    static Random generator() {
        throw absent();
    }

    static Object described(List<Placers.Broker> brokers) {
        throw absent();
    }

    static Map<Integer, List<Integer>> placed(
            Object described, int partitions, int factor, int fixedStartIndex, int startPartition) {
        throw absent();
    }

    static Map<Integer, List<Integer>> rows(
            List<Placers.Broker> brokers, int partitions, int factor, int fixedStartIndex, int startPartition) {
        throw absent();
    }

    static List<Integer> rackAlternated(List<Placers.Broker> brokers) {
        throw absent();
    }

    private static UnsupportedOperationException absent() {
        return new UnsupportedOperationException("this release has no AdminUtils");
    }
}
