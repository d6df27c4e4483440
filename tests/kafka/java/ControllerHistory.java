//@ file since 4.1
package org.apache.kafka.controller;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

import kafka.server.KafkaRaftServer;

import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.CreatePartitionsRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.common.message.ElectLeadersRequestData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.ClearElrRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metadata.UnregisterBrokerRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.BrokerHeartbeatReply;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.EligibleLeaderReplicasVersion;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

/** The managers of one active controller, with a log of their records that is applied to them at once. */
public final class ControllerHistory {
    private static final long STALE = 1_000_000;

    private final Time time;
    private final ClusterControlManager cluster;
    private final ConfigurationControlManager configuration;
    private final FeatureControlManager features;
    private final ReplicationControlManager replication;
    private final List<Long> endsAfterSteps = new ArrayList<>();
    private long nextOffset = 0;

    public ControllerHistory(Time time, boolean elr) {
        this.time = time;
        LogContext context = new LogContext();
        SnapshotRegistry snapshots = new SnapshotRegistry(context);
        features = new FeatureControlManager.Builder().setLogContext(context).setSnapshotRegistry(snapshots)
                .setQuorumFeatures(new QuorumFeatures(0, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(0)))
                .build();
        replay(new FeatureLevelRecord().setName(MetadataVersion.FEATURE_NAME)
                .setFeatureLevel(MetadataVersion.latestProduction().featureLevel()));
        replay(new FeatureLevelRecord().setName(EligibleLeaderReplicasVersion.FEATURE_NAME)
                .setFeatureLevel((short) (elr ? 1 : 0)));
        ReplicationControlManager[] built = new ReplicationControlManager[1];
        cluster = new ClusterControlManager.Builder().setLogContext(context).setSnapshotRegistry(snapshots)
                .setClusterId("cluster").setTime(time).setFeatureControlManager(features)
                .setReplicaPlacer(new StripedReplicaPlacer(new Random(0)))
                .setBrokerShutdownHandler((broker, clean, records) -> built[0].handleBrokerShutdown(broker, clean, records))
                .build();
        configuration = new ConfigurationControlManager.Builder().setLogContext(context).setSnapshotRegistry(snapshots)
                .setKafkaConfigSchema(KafkaRaftServer.configSchema()).setFeatureControl(features).build();
        replication = new ReplicationControlManager.Builder().setLogContext(context).setSnapshotRegistry(snapshots)
                .setClusterControl(cluster).setConfigurationControl(configuration).setFeatureControl(features).build();
        built[0] = replication;
        cluster.activate();
    }

    /** Remember where the log ends, for heartbeats that are behind, and describe brokers and partitions. */
    public String endStep() {
        endsAfterSteps.add(nextOffset - 1);
        StringBuilder text = new StringBuilder();
        for (Map.Entry<Integer, BrokerRegistration> each : new TreeMap<>(cluster.brokerRegistrations()).entrySet()) {
            text.append(each.getKey()).append(each.getValue().fenced() ? "F" : "U")
                    .append(each.getValue().inControlledShutdown() ? "S" : "").append(' ');
        }
        for (Map.Entry<String, Uuid> topic : new TreeMap<>(replication.findAllTopicIds(Long.MAX_VALUE)).entrySet()) {
            for (int partition = 0; ; partition++) {
                PartitionRegistration state = replication.getPartition(topic.getValue(), partition);
                if (state == null) {
                    break;
                }
                describe(text.append('\n').append(topic.getKey()).append('-').append(partition), state);
            }
        }
        return text.toString();
    }

    private static void describe(StringBuilder text, PartitionRegistration state) {
        list(text, state.replicas);
        list(text, state.isr);
        text.append(' ').append(state.leader).append(' ').append(state.leaderEpoch)
                .append(' ').append(state.partitionEpoch);
        list(text, state.elr);
        list(text, state.lastKnownElr);
        list(text, state.addingReplicas);
        list(text, state.removingReplicas);
        text.append(state.leaderRecoveryState == LeaderRecoveryState.RECOVERING ? " recovering" : "");
    }

    private static void list(StringBuilder text, int[] brokers) {
        text.append(" [");
        for (int i = 0; i < brokers.length; i++) {
            text.append(i > 0 ? "," : "").append(brokers[i]);
        }
        text.append(']');
    }

    // What is asked. Each answers what a broker or an operator would see.

    public String register(int broker, int incarnation, boolean clean) {
        BrokerRegistration known = cluster.brokerRegistrations().get(broker);
        BrokerRegistrationRequestData request = new BrokerRegistrationRequestData().setBrokerId(broker)
                .setClusterId("cluster").setIncarnationId(new Uuid(7, incarnation + 1))
                .setLogDirs(List.of(new Uuid(9, broker + 1)))
                .setPreviousBrokerEpoch(clean && known != null ? known.epoch() : -1);
        request.features().add(new BrokerRegistrationRequestData.Feature().setName(MetadataVersion.FEATURE_NAME)
                .setMinSupportedVersion(MetadataVersion.MINIMUM_VERSION.featureLevel())
                .setMaxSupportedVersion(MetadataVersion.latestProduction().featureLevel()));
        request.features().add(new BrokerRegistrationRequestData.Feature().setName(EligibleLeaderReplicasVersion.FEATURE_NAME)
                .setMinSupportedVersion((short) 0).setMaxSupportedVersion((short) 1));
        Map<String, Short> finalized = new HashMap<>(features.finalizedFeatures(Long.MAX_VALUE).featureMap());
        finalized.put(KRaftVersion.FEATURE_NAME, (short) 0);
        return attempt(() -> {
            apply(cluster.registerBroker(request, nextOffset, new FinalizedControllerFeatures(finalized, Long.MAX_VALUE), true));
            return "0";
        });
    }

    /** `offsetStep` is the step after which the broker's metadata ends; -1 for before its registration. */
    public String heartbeat(int broker, boolean current, int offsetStep, boolean wantFence, boolean wantShutDown) {
        BrokerRegistration known = cluster.brokerRegistrations().get(broker);
        long epoch = (known == null ? 0 : known.epoch()) + (current ? 0 : STALE);
        long registered = cluster.registerBrokerRecordOffset(broker).orElse(0);
        BrokerHeartbeatRequestData request = new BrokerHeartbeatRequestData().setBrokerId(broker).setBrokerEpoch(epoch)
                .setCurrentMetadataOffset(offsetStep < 0 ? registered - 1 : endsAfterSteps.get(offsetStep))
                .setWantFence(wantFence).setWantShutDown(wantShutDown);
        return attempt(() -> {
            cluster.trackBrokerHeartbeat(broker, epoch);
            BrokerHeartbeatReply reply = apply(replication.processBrokerHeartbeat(request, registered));
            if (reply.inControlledShutdown()) {
                cluster.heartbeatManager().maybeUpdateControlledShutdownOffset(broker, nextOffset - 1);
            }
            return "0" + (reply.isFenced() ? "F" : "U") + (reply.inControlledShutdown() ? "S" : "")
                    + (reply.shouldShutDown() ? "!" : "");
        });
    }

    public void fenceStale() {
        while (apply(replication.maybeFenceOneStaleBroker())) {
            continue;
        }
    }

    public String alterPartition(int sender, boolean current, String topic, int partition, int[] epochs, int[] isr,
            int[] epochModes, boolean recovering) {
        AlterPartitionRequestData.PartitionData data = new AlterPartitionRequestData.PartitionData()
                .setPartitionIndex(partition).setLeaderEpoch(epochs[0]).setPartitionEpoch(epochs[1])
                .setLeaderRecoveryState(recovering ? LeaderRecoveryState.RECOVERING.value() : LeaderRecoveryState.RECOVERED.value());
        for (int i = 0; i < isr.length; i++) {
            BrokerRegistration known = cluster.brokerRegistrations().get(isr[i]);
            long epoch = known == null ? 0 : known.epoch();
            data.newIsrWithEpochs().add(new AlterPartitionRequestData.BrokerState().setBrokerId(isr[i])
                    .setBrokerEpoch(epochModes[i] == 0 ? epoch : epochModes[i] == 1 ? -1 : epoch + STALE));
        }
        BrokerRegistration known = cluster.brokerRegistrations().get(sender);
        AlterPartitionRequestData request = new AlterPartitionRequestData().setBrokerId(sender)
                .setBrokerEpoch((known == null ? 0 : known.epoch()) + (current ? 0 : STALE));
        request.topics().add(new AlterPartitionRequestData.TopicData().setTopicId(idOf(topic)).setPartitions(List.of(data)));
        return attempt(() -> String.valueOf(
                apply(replication.alterPartition(context((short) 3), request)).topics().get(0).partitions().get(0).errorCode()));
    }

    public String elect(String topic, int partition, byte type) {
        ElectLeadersRequestData request = new ElectLeadersRequestData().setElectionType(type);
        request.setTopicPartitions(new ElectLeadersRequestData.TopicPartitionsCollection());
        request.topicPartitions().add(
                new ElectLeadersRequestData.TopicPartitions().setTopic(topic).setPartitions(List.of(partition)));
        return attempt(() -> String.valueOf(apply(replication.electLeaders(request))
                .replicaElectionResults().get(0).partitionResult().get(0).errorCode()));
    }

    /** No replicas cancels. */
    public String reassign(String topic, int partition, List<Integer> replicas) {
        AlterPartitionReassignmentsRequestData request = new AlterPartitionReassignmentsRequestData();
        request.topics().add(new AlterPartitionReassignmentsRequestData.ReassignableTopic().setName(topic).setPartitions(
                List.of(new AlterPartitionReassignmentsRequestData.ReassignablePartition().setPartitionIndex(partition)
                        .setReplicas(replicas.isEmpty() ? null : replicas))));
        return attempt(() -> String.valueOf(apply(replication.alterPartitionReassignments(request))
                .responses().get(0).partitions().get(0).errorCode()));
    }

    public String create(String topic, List<List<Integer>> replicas) {
        CreateTopicsRequestData.CreatableTopic asked = new CreateTopicsRequestData.CreatableTopic().setName(topic)
                .setNumPartitions(-1).setReplicationFactor((short) -1);
        for (int i = 0; i < replicas.size(); i++) {
            asked.assignments().add(new CreateTopicsRequestData.CreatableReplicaAssignment()
                    .setPartitionIndex(i).setBrokerIds(replicas.get(i)));
        }
        CreateTopicsRequestData request = new CreateTopicsRequestData();
        request.topics().add(asked);
        return attempt(() -> String.valueOf(
                created(request).topics().find(topic).errorCode()));
    }

    private CreateTopicsResponseData created(CreateTopicsRequestData request) {
        return apply(replication.createTopics(context((short) 7), request, Set.of()
                //@ since 4.3
                , false
                //@ end
                ));
    }

    private Map<ConfigResource, ApiError> configured(
            Map<ConfigResource, Map<String, Map.Entry<AlterConfigOp.OpType, String>>> changes) {
        return apply(configuration.incrementalAlterConfigs(changes, false
                //@ since 4.3
                , false
                //@ end
                ));
    }

    /** A heartbeat of a broker that has read everything, with its log directory cordoned or not. */
    public String cordon(int broker, boolean cordoned) {
        long epoch = cluster.brokerRegistrations().get(broker).epoch();
        BrokerHeartbeatRequestData request = new BrokerHeartbeatRequestData().setBrokerId(broker).setBrokerEpoch(epoch)
                .setCurrentMetadataOffset(nextOffset - 1).setWantFence(cluster.brokerRegistrations().get(broker).fenced());
        //@ since 4.3
        request.setCordonedLogDirs(cordoned ? List.of(new Uuid(9, broker + 1)) : List.of());
        //@ end
        return attempt(() -> {
            apply(replication.processBrokerHeartbeat(request, cluster.registerBrokerRecordOffset(broker).orElse(0)));
            return "0";
        });
    }

    /** A topic whose replicas the controller places. */
    public String place(String topic, int count, int factor) {
        CreateTopicsRequestData request = new CreateTopicsRequestData();
        request.topics().add(new CreateTopicsRequestData.CreatableTopic().setName(topic)
                .setNumPartitions(count).setReplicationFactor((short) factor));
        return attempt(() -> {
            var told = created(request).topics().find(topic);
            return told.errorCode() + (told.errorMessage() == null ? "" : ":" + told.errorMessage());
        });
    }

    /** More partitions of a topic, which the controller places. */
    public String extend(String topic, int count) {
        CreatePartitionsRequestData.CreatePartitionsTopic asked =
                new CreatePartitionsRequestData.CreatePartitionsTopic().setName(topic).setCount(count).setAssignments(null);
        return attempt(() -> {
            var told = apply(replication.createPartitions(context((short) 3), List.of(asked))).get(0);
            return told.errorCode() + (told.errorMessage() == null ? "" : ":" + told.errorMessage());
        });
    }

    public String grow(String topic, int count, List<List<Integer>> replicas) {
        CreatePartitionsRequestData.CreatePartitionsTopic asked =
                new CreatePartitionsRequestData.CreatePartitionsTopic().setName(topic).setCount(count);
        List<CreatePartitionsRequestData.CreatePartitionsAssignment> assignments = new ArrayList<>();
        for (List<Integer> brokers : replicas) {
            assignments.add(new CreatePartitionsRequestData.CreatePartitionsAssignment().setBrokerIds(brokers));
        }
        asked.setAssignments(assignments);
        return attempt(() -> String.valueOf(
                apply(replication.createPartitions(context((short) 3), List.of(asked))).get(0).errorCode()));
    }

    public String delete(String topic) {
        return attempt(() -> String.valueOf(apply(replication.deleteTopics(context((short) 6), List.of(idOf(topic))))
                .values().iterator().next().error().code()));
    }

    /** An empty topic is the whole cluster; an empty value takes the setting away. */
    public String configure(String topic, String key, String value) {
        ConfigResource resource = topic.isEmpty()
                ? new ConfigResource(ConfigResource.Type.BROKER, "") : new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Map.Entry<AlterConfigOp.OpType, String> change = Map.entry(
                value.isEmpty() ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET, value);
        return attempt(() -> String.valueOf(configured(Map.of(resource, Map.of(key, change)))
                .get(resource).error().code()));
    }

    /** The two tasks that run every five minutes, one after the other. */
    public String balanceAndSweep() {
        apply(replication.maybeBalancePartitionLeaders());
        apply(replication.maybeElectUncleanLeaders());
        return "0";
    }

    public String failOver() {
        cluster.deactivate();
        cluster.activate();
        for (BrokerRegistration each : new TreeMap<>(cluster.brokerRegistrations()).values()) {
            if (!each.fenced()) {
                time.sleep(1);
                cluster.trackBrokerHeartbeat(each.id(), each.epoch());
            }
        }
        return "0";
    }

    private interface Attempt {
        String make();
    }

    private static String attempt(Attempt attempt) {
        try {
            return attempt.make();
        } catch (RuntimeException error) {
            Errors code = Errors.forException(error);
            return code == Errors.UNKNOWN_SERVER_ERROR ? error.toString() : String.valueOf(code.code());
        }
    }

    private Uuid idOf(String topic) {
        Uuid id = replication.getTopicId(topic);
        return id == null ? new Uuid(1, 1) : id;
    }

    private static ControllerRequestContext context(short version) {
        return new ControllerRequestContext(
                new RequestHeaderData().setRequestApiVersion(version), KafkaPrincipal.ANONYMOUS, OptionalLong.empty());
    }

    private <T> T apply(ControllerResult<T> result) {
        for (ApiMessageAndVersion record : result.records()) {
            replay(record.message());
        }
        return result.response();
    }

    private void replay(ApiMessage record) {
        long offset = nextOffset++;
        if (record instanceof TopicRecord topic) {
            replication.replay(topic);
        } else if (record instanceof PartitionRecord partition) {
            replication.replay(partition);
        } else if (record instanceof PartitionChangeRecord change) {
            replication.replay(change);
        } else if (record instanceof RemoveTopicRecord removed) {
            replication.replay(removed);
        } else if (record instanceof ClearElrRecord cleared) {
            replication.replay(cleared);
        } else if (record instanceof ConfigRecord config) {
            configuration.replay(config);
        } else if (record instanceof RegisterBrokerRecord registered) {
            cluster.replay(registered, offset);
        } else if (record instanceof UnregisterBrokerRecord unregistered) {
            cluster.replay(unregistered);
        } else if (record instanceof BrokerRegistrationChangeRecord changed) {
            cluster.replay(changed);
        } else if (record instanceof FeatureLevelRecord feature) {
            features.replay(feature);
        } else {
            throw new IllegalStateException("no record like " + record);
        }
    }
}
