package org.apache.kafka.controller;

import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.common.requests.ApiError;

/** Calls whose parameters differ between releases: before 4.3. */
final class ControllerCalls {
    private ControllerCalls() {
    }

    static ControllerResult<CreateTopicsResponseData> create(
            ReplicationControlManager replication, ControllerRequestContext context, CreateTopicsRequestData request) {
        return replication.createTopics(context, request, Set.of());
    }

    static void cordon(BrokerHeartbeatRequestData request, List<Uuid> directories) {
        throw new UnsupportedOperationException("log directories are cordoned since 4.3");
    }

    static ControllerResult<Map<ConfigResource, ApiError>> configure(ConfigurationControlManager configuration,
            ConfigResource resource, Map<String, Map.Entry<AlterConfigOp.OpType, String>> changes) {
        return configuration.incrementalAlterConfigs(Map.of(resource, changes), false);
    }
}
