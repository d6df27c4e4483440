import java.lang.reflect.Field;
import java.lang.reflect.Method;

/** Fields of Kafka's value classes, which are components of records since 4.2, and what only their package sees. */
final class Fields {
    private Fields() {
    }

    static Object of(Object holder, String name) {
        try {
            Field field = holder.getClass().getDeclaredField(name);
            field.setAccessible(true);
            return field.get(holder);
        } catch (ReflectiveOperationException absent) {
            throw new IllegalStateException(absent);
        }
    }

    /** What a method without parameters returns that is its package's alone. */
    static int called(Object holder, String name) {
        try {
            Method method = holder.getClass().getDeclaredMethod(name);
            method.setAccessible(true);
            return (Integer) method.invoke(holder);
        } catch (ReflectiveOperationException absent) {
            throw new IllegalStateException(absent);
        }
    }

    static long number(Object holder, String name) {
        return ((Number) of(holder, name)).longValue();
    }
}
