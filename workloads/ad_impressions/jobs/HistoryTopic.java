import java.io.IOException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * What lies in files, as a topic: each record in the partition and at the offset that it had in the topic from which it
 * came. So whoever counts it names it as everybody else does.
 */
final class HistoryTopic {
    private final String name;
    private final History history;
    private final Admin admin;

    HistoryTopic(String name, History history, Admin admin) {
        this.name = name;
        this.history = history;
        this.admin = admin;
    }

    /** Where a start that was killed has left a part of it, this one goes on behind that. */
    void load(Map<String, Object> connection) throws IOException, ExecutionException, InterruptedException {
        create();
        List<Long> there = ends();
        ByteArraySerializer bytes = new ByteArraySerializer();
        try (Producer<byte[], byte[]> producer = new KafkaProducer<>(connection, bytes, bytes)) {
            for (int partition = 0; partition < there.size(); partition++) {
                send(producer, partition, there.get(partition));
            }
        }
        refuseUnlessWhole();
    }

    /** Whoever may have written it before, it is made once. */
    private void create() throws ExecutionException, InterruptedException {
        NewTopic topic = new NewTopic(name, Optional.of(history.ends().size()), Optional.empty())
                .configs(Map.of("retention.ms", "-1", "retention.bytes", "-1"));
        try {
            admin.createTopics(List.of(topic)).all().get();
        } catch (ExecutionException error) {
            if (!(error.getCause() instanceof TopicExistsException)) {
                throw error;
            }
        }
    }

    private void send(Producer<byte[], byte[]> producer, int partition, long from) throws IOException {
        for (History.Stretch stretch : history.stretches(partition)) {
            if (stretch.end() <= from) {
                continue;
            }
            List<byte[]> lines = stretch.lines();
            for (byte[] line : lines.subList((int) Math.max(0, from - stretch.first()), lines.size())) {
                // In a file a record without a value is an empty line.
                producer.send(new ProducerRecord<>(name, partition, null, line.length == 0 ? null : line));
            }
        }
    }

    /** What a producer that was killed had under way may have come behind our look; and one of ours may have failed. */
    private void refuseUnlessWhole() throws ExecutionException, InterruptedException {
        List<Long> there = ends();
        for (int partition = 0; partition < there.size(); partition++) {
            long wanted = history.ends().get(partition);
            if (there.get(partition) != wanted) {
                throw new IllegalStateException(String.format(
                        Locale.ROOT,
                        "Topic %s holds %,d records of partition %d, and the files hold %,d. Nothing was counted. Delete that "
                                + "topic, and start again.",
                        name,
                        there.get(partition),
                        partition,
                        wanted));
            }
        }
    }

    private List<Long> ends() throws ExecutionException, InterruptedException {
        List<TopicPartition> places = IntStream.range(0, history.ends().size())
                .mapToObj(partition -> new TopicPartition(name, partition))
                .toList();
        Map<TopicPartition, OffsetSpec> latest =
                places.stream().collect(Collectors.toMap(Function.identity(), place -> OffsetSpec.latest()));
        var found = admin.listOffsets(latest).all().get();
        return places.stream().map(place -> found.get(place).offset()).toList();
    }
}
