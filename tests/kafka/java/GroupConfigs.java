import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;

/**
 * Says of settings of a broker and of a group whether Kafka takes them: "broker", "group" or nothing is refused.
 *
 * A line of input is the broker's settings, a tab, and the group's, each as name=value with spaces between. A line of
 * output is what is refused and, after a tab, Kafka's message.
 */
public final class GroupConfigs {
    private static final String PLACE = "org.apache.kafka.coordinator.group.";

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line = input.readLine();
        while (line != null) {
            String[] sides = line.split("\t", 2);
            System.out.println(answer(properties(sides[0]), properties(sides[1])));
            line = input.readLine();
        }
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

    private static Properties properties(String text) {
        Properties properties = new Properties();
        for (String one : text.isEmpty() ? new String[0] : text.split(" ")) {
            String[] parts = one.split("=", 2);
            properties.setProperty(parts[0], parts[1]);
        }
        return properties;
    }
}
