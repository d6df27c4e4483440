package org.apache.kafka.tools;  // For TopicCommand's service, which is the package's alone since 4.1.

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Producer, consumer, Admin client and tools of one cluster. */
public final class ClusterClient {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int SECONDS_MAX = 60;

    private String servers;
    private final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();
    private Admin admin;

    /** Answer the call that `does` names. */
    public JsonNode answer(ObjectNode request) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        switch (request.get("does").asText()) {
            case "connect" -> servers = request.get("servers").asText();
            case "format" -> format(request);
            case "create" -> create(request);
            case "describe" -> answer.put("text", describe());
            case "quorum" -> quorum(answer);
            case "produce" -> produce(request, answer);
            case "commit" -> producers.get(request.get("producer").asText()).commitTransaction();
            case "abort" -> producers.get(request.get("producer").asText()).abortTransaction();
            case "reassign" -> reassign(request);
            case "delete" -> admin().deleteTopics(List.of(request.get("topic").asText())).all()
                .get(SECONDS_MAX, TimeUnit.SECONDS);
            case "consume" -> consume(request, answer);
            case "tool" -> answer.put("text", tool(request));
            default -> throw new IllegalArgumentException("no call " + request.get("call"));
        }
        return answer;
    }

    private Admin admin() {
        if (admin == null) {
            admin = Admin.create(Map.of("bootstrap.servers", servers));
        }
        return admin;
    }

    /** Run kafka-storage over the property files, as an operator does before a first start. */
    private static void format(ObjectNode request) {
        PrintStream silent = new PrintStream(new ByteArrayOutputStream());
        for (JsonNode properties : request.get("properties")) {
            String[] arguments = {"format", "-t", request.get("cluster").asText(), "-c", properties.asText()};
            int status = kafka.tools.StorageTool.execute(arguments, silent);
            if (status != 0) {
                throw new IllegalStateException("kafka-storage ended with " + status);
            }
        }
    }

    private void create(ObjectNode request) throws Exception {
        Map<Integer, List<Integer>> replicas = new HashMap<>();
        for (JsonNode row : request.get("replicas")) {
            replicas.put(replicas.size(), numbers(row));
        }
        Map<String, String> settings = new HashMap<>();
        request.get("settings").fields().forEachRemaining(each -> settings.put(each.getKey(), each.getValue().asText()));
        NewTopic topic = replicas.isEmpty()
            ? new NewTopic(request.get("topic").asText(), Optional.of(request.get("partitions").asInt()),
                Optional.of((short) request.get("factor").asInt()))
            : new NewTopic(request.get("topic").asText(), replicas);
        admin().createTopics(List.of(topic.configs(settings))).all().get(SECONDS_MAX, TimeUnit.SECONDS);
    }

    /** Return what kafka-topics --describe prints. */
    private String describe() throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        PrintStream before = System.out;
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        try {
            String[] arguments = {"--bootstrap-server", servers, "--describe"};
            new TopicCommand.TopicService(admin()).describeTopic(new TopicCommand.TopicCommandOptions(arguments));
        } finally {
            System.setOut(before);
        }
        return out.toString(StandardCharsets.UTF_8);
    }

    /** Return what the main method of one of Kafka's tools prints with these arguments. */
    private String tool(ObjectNode request) throws Exception {
        List<String> arguments = new ArrayList<>(List.of("--bootstrap-server", servers));
        request.get("arguments").forEach(each -> arguments.add(each.asText()));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        PrintStream before = System.out;
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        org.apache.kafka.common.utils.internals.Exit.setExitProcedure((status, message) -> {
            throw new IllegalStateException("the tool ends with " + status);
        });
        try {
            Class.forName(request.get("tool").asText()).getMethod("main", String[].class)
                .invoke(null, (Object) arguments.toArray(String[]::new));
        } catch (java.lang.reflect.InvocationTargetException refusal) {
            throw new IllegalStateException(out.toString(StandardCharsets.UTF_8), refusal.getCause());
        } finally {
            org.apache.kafka.common.utils.internals.Exit.resetExitProcedure();
            System.setOut(before);
        }
        return out.toString(StandardCharsets.UTF_8);
    }

    private void quorum(ObjectNode answer) throws Exception {
        var quorum = admin().describeMetadataQuorum().quorumInfo().get(SECONDS_MAX, TimeUnit.SECONDS);
        answer.put("leader", quorum.leaderId()).put("highWatermark", quorum.highWatermark());
    }

    /** Send records with acks=all; the answer has partition and offset of each that was acknowledged. */
    private void produce(ObjectNode request, ObjectNode answer) throws Exception {
        boolean isTransactional = request.path("transactional").asBoolean();
        String name = request.get("producer").asText();
        KafkaProducer<String, String> producer = producers.get(name);
        if (producer == null) {
            producer = producer(name, request.get("codec").asText(), isTransactional);
            producers.put(name, producer);
        }
        if (isTransactional) {
            producer.beginTransaction();
        }
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode record : request.get("records")) {
            String value = record.get(2).isNull() ? null : record.get(2).asText();
            String key = record.get(1).isNull() ? null : record.get(1).asText();
            sent.add(producer.send(new ProducerRecord<>(request.get("topic").asText(), record.get(0).asInt(), key, value)));
        }
        producer.flush();
        ArrayNode acknowledged = answer.putArray("acknowledged");
        for (Future<RecordMetadata> each : sent) {
            RecordMetadata place = each.get(SECONDS_MAX, TimeUnit.SECONDS);
            acknowledged.addArray().add(place.partition()).add(place.offset());
        }
    }

    private KafkaProducer<String, String> producer(String name, String codec, boolean isTransactional) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("acks", "all");
        settings.put("linger.ms", "20");
        settings.put("compression.type", codec);
        settings.put("delivery.timeout.ms", Integer.toString(1000 * SECONDS_MAX));
        if (isTransactional) {
            settings.put("transactional.id", name);
            settings.put("transaction.timeout.ms", "600000");
        }
        KafkaProducer<String, String> producer =
            new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        if (isTransactional) {
            producer.initTransactions();
        }
        return producer;
    }

    private void reassign(ObjectNode request) throws Exception {
        TopicPartition partition = new TopicPartition(request.get("topic").asText(), request.get("partition").asInt());
        NewPartitionReassignment target = new NewPartitionReassignment(numbers(request.get("replicas")));
        admin().alterPartitionReassignments(Map.of(partition, Optional.of(target))).all()
            .get(SECONDS_MAX, TimeUnit.SECONDS);
    }

    /** Read whole partitions from their beginnings to the ends that a consumer of this isolation level sees. */
    private void consume(ObjectNode request, ObjectNode answer) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("isolation.level", request.get("isolation").asText());
        settings.put("check.crcs", "true");
        List<TopicPartition> partitions = new ArrayList<>();
        for (JsonNode each : request.get("partitions")) {
            partitions.add(new TopicPartition(each.get(0).asText(), each.get(1).asInt()));
        }
        ArrayNode records = answer.putArray("records");
        try (KafkaConsumer<String, byte[]> consumer =
                 new KafkaConsumer<>(settings, new StringDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS_MAX);
            while (partitions.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("the consumer does not come to the ends " + ends);
                }
                for (ConsumerRecord<String, byte[]> each : consumer.poll(Duration.ofMillis(200))) {
                    String value = each.value() == null ? null : new String(each.value(), StandardCharsets.UTF_8);
                    records.addArray().add(each.topic()).add(each.partition()).add(each.offset())
                        .add(each.timestamp()).add(each.key()).add(value);
                }
            }
        }
    }

    private static List<Integer> numbers(JsonNode row) {
        List<Integer> numbers = new ArrayList<>();
        row.forEach(each -> numbers.add(each.asInt()));
        return numbers;
    }
}
