import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Delayed;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;

/** A clock that moves when it is told to, and a scheduler that runs on the caller's thread what is due by then. */
final class ManualTime implements Time, Scheduler {
    private final List<Task> tasks = new ArrayList<>();
    private long nowMs;

    ManualTime(long nowMs) {
        this.nowMs = nowMs;
    }

    /** Run what is due, earliest first; tasks that are scheduled meanwhile and due too are run as well. */
    void runDue() {
        while (true) {
            Task next = tasks.stream().filter(task -> task.dueMs <= nowMs)
                    .min(Comparator.comparingLong(task -> task.dueMs)).orElse(null);
            if (next == null) {
                return;
            }
            if (next.periodMs > 0) {
                next.dueMs += next.periodMs;
            } else {
                tasks.remove(next);
            }
            next.work.run();
        }
    }

    @Override
    public long milliseconds() {
        return nowMs;
    }

    @Override
    public long nanoseconds() {
        return nowMs * 1_000_000;
    }

    @Override
    public void sleep(long ms) {
        nowMs += ms;
        runDue();
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        throw new UnsupportedOperationException("nothing here waits");
    }

    @Override
    public void startup() {
    }

    @Override
    public void shutdown() {
        tasks.clear();
    }

    @Override
    public ScheduledFuture<?> schedule(String name, Runnable work, long delayMs, long periodMs) {
        Task task = new Task(work, nowMs + delayMs, periodMs);
        tasks.add(task);
        runDue();
        return task;
    }

    @Override
    public void resizeThreadPool(int size) {
    }

    private final class Task extends FutureTask<Void> implements ScheduledFuture<Void> {
        private final Runnable work;
        private final long periodMs;
        private long dueMs;

        Task(Runnable work, long dueMs, long periodMs) {
            super(work, null);
            this.work = work;
            this.dueMs = dueMs;
            this.periodMs = periodMs;
        }

        @Override
        public boolean cancel(boolean mayInterrupt) {
            return tasks.remove(this);
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return unit.convert(dueMs - nowMs, TimeUnit.MILLISECONDS);
        }

        @Override
        public int compareTo(Delayed other) {
            return Long.compare(getDelay(TimeUnit.MILLISECONDS), other.getDelay(TimeUnit.MILLISECONDS));
        }
    }
}
