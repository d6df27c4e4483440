import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.ConfigKey;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Prints every setting of a broker, a topic and a group that a release defines, one a line, sorted:
 * scope, name, type, default, validator, lists, internal, deprecated, update mode, synonyms; separated by tabs.
 *
 * A validator that says nothing of itself is printed by its class; `lists` names the lists that a validator takes
 * beside those that name each item once; `deprecated` is what the text for users says.
 */
public final class ConfigDefs {
    public static void main(String[] arguments) throws ReflectiveOperationException {
        print("broker", AbstractKafkaConfig.CONFIG_DEF, updateModes());
        print("topic", LogConfig.configDefCopy(), Map.of());
        print("group", groups(), Map.of());
    }

    /** The settings of groups, which came with 4.0. */
    private static ConfigDef groups() throws ReflectiveOperationException {
        Class<?> groups;
        try {
            groups = Class.forName("org.apache.kafka.coordinator.group.GroupConfig");
        } catch (ClassNotFoundException none) {
            return new ConfigDef();
        }
        try {
            return (ConfigDef) groups.getField("CONFIG_DEF").get(null);
        } catch (NoSuchFieldException older) {
            return (ConfigDef) groups.getMethod("configDef").invoke(null);
        }
    }

    /** How a broker's settings are updated while it runs; a Scala object has it before 4.3. */
    @SuppressWarnings("unchecked")
    private static Map<String, String> updateModes() throws ReflectiveOperationException {
        Class<?> holder;
        Object instance = null;
        try {
            holder = Class.forName("org.apache.kafka.server.config.DynamicBrokerConfig");
        } catch (ClassNotFoundException older) {
            holder = Class.forName("kafka.server.DynamicBrokerConfig$");
            instance = holder.getField("MODULE$").get(null);
        }
        return (Map<String, String>) holder.getMethod("dynamicConfigUpdateModes").invoke(instance);
    }

    private static void print(String scope, ConfigDef settings, Map<String, String> modes) {
        new TreeMap<>(settings.configKeys()).forEach((name, key) -> System.out.println(String.join("\t",
                scope, name, key.type.name(), text(key), validator(key), lists(key), String.valueOf(key.internalConfig),
                String.valueOf(key.documentation != null && isDeprecated(key.documentation)),
                modes.getOrDefault(name, ""), synonyms(scope, name))));
    }

    private static String text(ConfigKey key) {
        if (key.defaultValue == ConfigDef.NO_DEFAULT_VALUE)
            return "required";
        if (key.defaultValue == null)
            return "null";
        String text = key.type == Type.CLASS ? className(key.defaultValue) : ConfigDef.convertToString(key.defaultValue, key.type);
        return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t");
    }

    private static String className(Object value) {
        return value instanceof Class<?> found ? found.getName() : value.toString();
    }

    private static String validator(ConfigKey key) {
        if (key.validator == null)
            return "";
        String text = key.validator.toString();
        return text.startsWith(key.validator.getClass().getName()) ? key.validator.getClass().getSimpleName() : text;
    }

    /** Of a list's validator: whether it takes a list of nothing, and one that names its default's first item twice. */
    private static String lists(ConfigKey key) {
        if (key.type != Type.LIST || !(key.defaultValue instanceof List<?> items))
            return "";
        List<Object> twice = new ArrayList<>();
        if (!items.isEmpty())
            twice.addAll(List.of(items.get(0), items.get(0)));
        List<String> taken = new ArrayList<>();
        if (takes(key, List.of()))
            taken.add("empty");
        if (!twice.isEmpty() && takes(key, twice))
            taken.add("repeated");
        return String.join(",", taken);
    }

    private static boolean takes(ConfigKey key, Object value) {
        if (key.validator == null)
            return true;
        try {
            key.validator.ensureValid(key.name, value);
            return true;
        } catch (ConfigException refused) {
            return false;
        }
    }

    private static boolean isDeprecated(String documentation) {
        return documentation.toLowerCase(java.util.Locale.ROOT).contains("deprecated");
    }

    private static String synonyms(String scope, String name) {
        if (!scope.equals("topic") || !ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.containsKey(name))
            return "";
        StringBuilder names = new StringBuilder();
        ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.get(name)
                .forEach(one -> names.append(names.isEmpty() ? "" : ",").append(one.name()));
        return names.toString();
    }

    private ConfigDefs() {}
}
