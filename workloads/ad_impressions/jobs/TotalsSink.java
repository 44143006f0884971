import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.common.operators.ProcessingTimeService;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import redis.clients.jedis.Jedis;

/**
 * Totals to Redis, a moment after they have changed, and all of them before a checkpoint is complete.
 */
final class TotalsSink implements Sink<FlinkRecords.Total> {
    private static final long WAITS_MS = 50; // so long a change waits for others
    private final String redis;
    private final String prefix;

    TotalsSink(JsonNode config) {
        this.redis = config.get("redis").asText();
        this.prefix = config.get("redis_prefix").asText();
    }

    @Override
    public SinkWriter<FlinkRecords.Total> createWriter(WriterInitContext context) {
        return new Writer(HighestTotals.connect(redis), prefix, context.getProcessingTimeService());
    }

    private static final class Writer implements SinkWriter<FlinkRecords.Total> {
        private final Jedis redis;
        private final HighestTotals totals;
        private final ProcessingTimeService clock;
        private final Map<String, Map<Long, Long>> changed = new HashMap<>();
        private boolean isDue;

        Writer(Jedis redis, String prefix, ProcessingTimeService clock) {
            this.redis = redis;
            this.totals = new HighestTotals(redis, prefix);
            this.clock = clock;
        }

        @Override
        public void write(FlinkRecords.Total total, Context context) {
            changed.computeIfAbsent(total.key(), key -> new HashMap<>()).put(total.windowMs(), total.total());
            if (!isDue) {
                isDue = true;
                clock.registerTimer(clock.getCurrentProcessingTime() + WAITS_MS, now -> flush(false));
            }
        }

        @Override
        public void flush(boolean endOfInput) {
            isDue = false;
            totals.write(changed);
            changed.clear();
        }

        @Override
        public void close() {
            redis.close();
        }
    }
}
