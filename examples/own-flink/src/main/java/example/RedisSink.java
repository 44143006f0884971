package example;

import java.net.URI;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import redis.clients.jedis.JedisPooled;

/**
 * `counts:CAMPAIGN` is a hash: start of a window -> views.
 *
 * After a crash Flink goes back to its last checkpoint and closes the windows since then once more. A total that is
 * written twice is the same total. An increment that is written twice is counted twice.
 */
final class RedisSink implements Sink<Total> {
    private final URI redis;
    private final String prefix;
    private final boolean increments;

    RedisSink(URI redis, String prefix, boolean increments) {
        this.redis = redis;
        this.prefix = prefix;
        this.increments = increments;
    }

    @Override
    public SinkWriter<Total> createWriter(WriterInitContext context) {
        return new Writer(new JedisPooled(redis), prefix, increments);
    }

    private record Writer(JedisPooled redis, String prefix, boolean increments) implements SinkWriter<Total> {
        @Override
        public void write(Total total, Context context) {
            String key = prefix + "counts:" + total.campaign();
            String field = Long.toString(total.windowMs());
            if (increments) {
                redis.hincrBy(key, field, total.views());
            } else {
                redis.hset(key, field, Long.toString(total.views()));
            }
        }

        @Override
        public void flush(boolean endOfInput) {} // each total is written when it comes

        @Override
        public void close() {
            redis.close();
        }
    }
}
