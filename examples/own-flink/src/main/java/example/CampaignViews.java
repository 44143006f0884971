package example;

import static org.apache.flink.configuration.ConfigOptions.key;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.resps.ScanResult;

/**
 * Counts views per campaign and window, from Kafka into Redis.
 *
 * <pre>java -jar target/own-flink.jar CONFIG.json</pre>
 *
 * Flink runs within this JVM. A total is written once, when the watermark passes the end of its window. Started again
 * with the same run config it goes on from its newest checkpoint.
 */
public final class CampaignViews {
    private static final String GROUP = "own-flink";
    private static final String CHECKPOINT = "chk-";

    // Options by which docs/test/flink.md makes the job wrong. Every other option is one of Flink's.
    private static final ConfigOption<Boolean> CHECKPOINTS = key("job.checkpoints").booleanType().defaultValue(true);
    private static final ConfigOption<Boolean> RESTORE = key("job.restore").booleanType().defaultValue(true);
    private static final ConfigOption<Boolean> INCREMENTS = key("job.increments").booleanType().defaultValue(false);
    private static final ConfigOption<Duration> OUT_OF_ORDER = key("job.out-of-order").durationType().noDefaultValue();

    public static void main(String[] arguments) throws Exception {
        RunConfig config = RunConfig.read(arguments[0]);
        Configuration job = Configuration.fromMap(config.options());
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.getExecutionEnvironment(settings(config, job));

        Duration outOfOrder = job.getOptional(OUT_OF_ORDER).orElse(Duration.ofMillis(config.watermarkMs()));
        WatermarkStrategy<View> eventTime = WatermarkStrategy.<View>forBoundedOutOfOrderness(outOfOrder)
                .withTimestampAssigner((view, kafkaTime) -> view.timeMs());

        flink.fromSource(views(config, job), eventTime, "views")
                .uid("views")
                .keyBy(View::campaign)
                .window(TumblingEventTimeWindows.of(Duration.ofMillis(config.windowMs())))
                .aggregate(new Count(), new Close())
                .uid("totals")
                .sinkTo(new RedisSink(config.redis(), config.prefix(), job.get(INCREMENTS)))
                .uid("redis");
        flink.execute(GROUP);
    }

    private static KafkaSource<View> views(RunConfig config, Configuration job) {
        Properties kafka = config.kafka();
        // With checkpoints Flink commits offsets when one is complete, for others to see; it restores its own.
        kafka.setProperty("enable.auto.commit", Boolean.toString(!job.get(CHECKPOINTS)));
        return KafkaSource.<View>builder()
                .setBootstrapServers(config.brokers())
                .setProperties(kafka)
                .setTopics(config.topic())
                .setGroupId(GROUP)
                .setStartingOffsets(OffsetsInitializer.committedOffsets(OffsetResetStrategy.EARLIEST))
                .setValueOnlyDeserializer(new ParseViews(campaigns(config)))
                .build();
    }

    private static Configuration settings(RunConfig config, Configuration job) throws IOException {
        Configuration settings = new Configuration();
        // A task without a partition has no watermark, and holds back that of all others: see docs/test/flink.md.
        int cores = Runtime.getRuntime().availableProcessors();
        settings.setString("parallelism.default", Integer.toString(Math.min(cores, config.partitions())));
        if (job.get(CHECKPOINTS)) {
            settings.setString("execution.checkpointing.interval", "1 s");
            settings.setString("execution.checkpointing.dir", config.checkpoint().toUri().toString());
            settings.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        }
        if (job.get(RESTORE)) {
            newest(config.checkpoint()).ifPresent(
                    path -> settings.setString("execution.state-recovery.path", path.toUri().toString()));
        }
        settings.setString("rest.address", "127.0.0.1");
        settings.setString("rest.bind-port", "0"); // two jobs may run on one machine
        settings.addAll(job);
        return settings;
    }

    /**
     * Each start writes into a folder of its own, and goes on with the numbers of the one from which it was restored. So
     * the highest number is the newest. One without `_metadata` was not complete.
     */
    private static Optional<Path> newest(Path folder) throws IOException {
        if (!Files.isDirectory(folder)) {
            return Optional.empty();
        }
        try (Stream<Path> found = Files.walk(folder, 2)) {
            return found.filter(path -> path.getFileName().toString().startsWith(CHECKPOINT))
                    .filter(path -> Files.exists(path.resolve("_metadata")))
                    .max(Comparator.comparingLong(path ->
                            Long.parseLong(path.getFileName().toString().substring(CHECKPOINT.length()))));
        }
    }

    /** Of each ad, from Redis: an ad is a key that holds its campaign. */
    private static HashMap<String, String> campaigns(RunConfig config) {
        HashMap<String, String> campaigns = new HashMap<>();
        ScanParams ours = new ScanParams().match(config.prefix() + "*").count(1000);
        try (JedisPooled redis = new JedisPooled(config.redis())) {
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
        }
        return campaigns;
    }

    private static final class Count implements AggregateFunction<View, Long, Long> {
        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(View view, Long views) {
            return views + 1;
        }

        @Override
        public Long getResult(Long views) {
            return views;
        }

        @Override
        public Long merge(Long one, Long other) {
            return one + other;
        }
    }

    /**
     * Flink keeps no watermark in its checkpoints. An event that comes late for a closed window, and soon after a
     * restart, opens that window anew: 1 would be written over its total. So the job keeps what it has closed.
     */
    private static final class Close extends ProcessWindowFunction<Long, Total, String, TimeWindow> {
        private static final ValueStateDescriptor<Long> CLOSED = new ValueStateDescriptor<>("closed", Long.class);

        @Override
        public void process(String campaign, Context context, Iterable<Long> views, Collector<Total> out)
                throws IOException {
            ValueState<Long> closed = context.globalState().getState(CLOSED);
            long endMs = context.window().getEnd();
            if (closed.value() == null || closed.value() < endMs) {
                closed.update(endMs);
                out.collect(new Total(campaign, context.window().getStart(), views.iterator().next()));
            }
        }
    }
}
