package example;

import java.io.IOException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Materialized.StoreType;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.Suppressed.StrictBufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.WindowStore;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.resps.ScanResult;

/**
 * Counts views per campaign and window, from Kafka into Redis.
 *
 * <pre>java -jar target/own-kafka-streams.jar CONFIG.json</pre>
 *
 * A total is written once, when its window and its grace are over. Redis is outside of Kafka's transaction: what was not
 * committed is written once more after a crash, so that totals are written and not increments.
 */
public final class CampaignViews {
    private static final String NAME = "own-kafka-streams";
    private static final byte[] NOTHING = new byte[0]; // a view is counted by its key and its time

    // Options by which docs/test/kafka-streams.md makes the job wrong. Kafka Streams takes all others.
    private static final String GRACE_MS = "job.grace-ms";
    private static final String INCREMENTS = "job.increments";
    private static final String CHANGELOGS = "job.changelogs";

    private final RunConfig config;
    private final Map<String, String> options;
    private final JedisPooled redis;

    public static void main(String[] arguments) throws IOException {
        new CampaignViews(RunConfig.read(arguments[0])).start();
    }

    private CampaignViews(RunConfig config) {
        this.config = config;
        options = config.options();
        redis = new JedisPooled(config.redis());
    }

    private void start() {
        KafkaStreams streams = new KafkaStreams(topology(), settings());
        // An error ends the process, as a kill would: a supervisor starts it again.
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
        streams.start();
    }

    private Properties settings() {
        Properties settings = config.kafka();
        settings.put("bootstrap.servers", config.brokers());
        // The id of its group, and the beginning of the names of its own topics. A run removes topics that begin so.
        settings.put("application.id", config.topic() + "." + NAME);
        settings.put("state.dir", config.checkpoint().toString());
        settings.put("processing.guarantee", "exactly_once_v2");
        // Started again it is the same member of its group, which need not wait until the killed one is missed.
        settings.put("main.consumer.group.instance.id", NAME);
        settings.putAll(options);
        return settings;
    }

    private Topology topology() {
        Map<String, String> campaigns = campaigns();
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<byte[], View> records = Consumed.with(
                        Serdes.ByteArray(), Serdes.serdeFrom((topic, view) -> NOTHING, (topic, record) -> View.parse(record, campaigns)))
                .withTimestampExtractor((record, newestMs) ->
                        record.value() instanceof View view ? view.timeMs() : Math.max(0, newestMs));
        Materialized<String, Long, WindowStore<Bytes, byte[]>> counts = Materialized.as("counts");
        KTable<Windowed<String>, Long> views = builder.stream(config.topic(), records)
                .filter((key, view) -> view != null)
                .map((key, view) -> KeyValue.pair(view.campaign(), NOTHING))
                .groupByKey(Grouped.with("by-campaign", Serdes.String(), Serdes.ByteArray()))
                .windowedBy(windows())
                .count(logged() ? counts : counts.withStoreType(StoreType.IN_MEMORY).withLoggingDisabled());
        StrictBufferConfig open = BufferConfig.unbounded();
        views.suppress(Suppressed.untilWindowCloses(logged() ? open : open.withLoggingDisabled()).withName("closed"))
                .toStream()
                .foreach(this::write);
        return builder.build();
    }

    private TimeWindows windows() {
        long graceMs = Long.parseLong(options.getOrDefault(GRACE_MS, Long.toString(config.watermarkMs())));
        return TimeWindows.ofSizeAndGrace(Duration.ofMillis(config.windowMs()), Duration.ofMillis(graceMs));
    }

    private void write(Windowed<String> window, Long views) {
        String key = config.prefix() + "counts:" + window.key();
        String field = Long.toString(window.window().start());
        if (Boolean.parseBoolean(options.get(INCREMENTS))) {
            redis.hincrBy(key, field, views);
        } else {
            redis.hset(key, field, views.toString());
        }
    }

    /** Whether its state can be read again from its topics in Kafka. */
    private boolean logged() {
        return !"false".equals(options.get(CHANGELOGS));
    }

    /** Of each ad, from Redis: an ad is a key that holds its campaign. */
    private Map<String, String> campaigns() {
        Map<String, String> campaigns = new HashMap<>();
        ScanParams ours = new ScanParams().match(config.prefix() + "*").count(1000);
        String cursor = ScanParams.SCAN_POINTER_START;
        do {
            ScanResult<String> page = redis.scan(cursor, ours, "string");
            List<String> ads = page.getResult();
            List<String> found = ads.isEmpty() ? List.of() : redis.mget(ads.toArray(String[]::new));
            for (int each = 0; each < ads.size(); each++) {
                campaigns.put(ads.get(each).substring(config.prefix().length()), found.get(each));
            }
            cursor = page.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        return campaigns;
    }
}
