import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;

import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;

/** Whether Kafka takes settings of a broker and of a group. */
final class GroupConfigs {
    private static final String PLACE = "org.apache.kafka.coordinator.group.";

    /** Which of a case's two sides is refused: "broker", "group", or nothing; and Kafka's message. */
    static ArrayNode answers(JsonNode input) throws Exception {
        ArrayNode answers = JsonNodeFactory.instance.arrayNode();
        for (JsonNode sides : input.get("cases")) {
            answers.add(answer(properties(sides.get(0)), properties(sides.get(1))));
        }
        return answers;
    }

    private static String answer(Properties broker, Properties group) throws Exception {
        Object coordinator;
        Object shares;
        // What every server has to say.
        broker.putAll(Map.of("process.roles", "broker", "node.id", "1", "controller.listener.names", "CONTROLLER"));
        try {
            AbstractConfig settings = new AbstractConfig(AbstractKafkaConfig.CONFIG_DEF, broker, Map.of(), false) { };
            coordinator = made(PLACE + "GroupCoordinatorConfig", settings);
            shares = made(PLACE + "modern.share.ShareGroupConfig", settings);
        } catch (InvocationTargetException refusal) {
            return "broker\t" + refusal.getCause().getMessage();
        } catch (RuntimeException refusal) {
            return "broker\t" + refusal.getMessage();
        }
        if (group.isEmpty())
            return "\t";
        try {
            validator().invoke(null, group, coordinator, shares);
            return "\t";
        } catch (InvocationTargetException refusal) {
            return "group\t" + refusal.getCause().getMessage();
        }
    }

    private static Object made(String name, AbstractConfig settings) throws ReflectiveOperationException {
        return Class.forName(name).getConstructor(AbstractConfig.class).newInstance(settings);
    }

    /** What the controller calls: since 4.3 GroupConfig.validate joins the broker's values, before its manager does. */
    private static Method validator() throws ReflectiveOperationException {
        return Stream.of("GroupConfigManager", "GroupConfig")
                .flatMap(name -> Stream.of(classOf(PLACE + name).getMethods()))
                .filter(method -> method.getName().equals("validate"))
                .findFirst().orElseThrow();
    }

    private static Class<?> classOf(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException missing) {
            throw new IllegalStateException(missing);
        }
    }

    private static Properties properties(JsonNode given) {
        Properties properties = new Properties();
        given.fields().forEachRemaining(each -> properties.setProperty(each.getKey(), each.getValue().asText()));
        return properties;
    }
}
