import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ArrayBlockingQueue;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Sends records over one hop as fast as it takes them: a function call, a queue, a Unix socket, a loopback socket, Kafka.
 *
 * <pre>java Ways receive PORT SOCKET        tells its TCP port, then serves
 * java Ways send PORT SOCKET TCP_PORT [KEY=VALUE...]    options are of Kafka's producer</pre>
 */
public class Ways {
    private static final int QUEUE_RECORDS = 1024;
    private static final int BETWEEN_CLOCKS = 256; // records between two looks at the clock
    private static final byte[] END = new byte[0];
    private static final Duration POLL = Duration.ofSeconds(1);

    public static void main(String[] words) throws Exception {
        try (Requests requests = new Requests(Integer.parseInt(words[1]))) {
            SocketAddress unix = UnixDomainSocketAddress.of(words[2]);
            if (words[0].equals("receive")) {
                receive(requests, unix);
            } else {
                SocketAddress tcp = new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(words[3]));
                send(requests, unix, tcp, List.of(words).subList(4, words.length));
            }
        }
    }

    // ---------------------------------------------------------------- sending

    private interface Hop {
        void take(byte[] record) throws Exception;
    }

    private static void send(Requests requests, SocketAddress unix, SocketAddress tcp, List<String> options)
            throws Exception {
        for (String[] words; (words = requests.next()) != null; ) {
            int size = Integer.parseInt(words[1]);
            long ns = Long.parseLong(words[2]) * 1_000_000;
            switch (words[0]) {
                case "call" -> call(requests, size, ns);
                case "queue" -> queue(requests, size, ns);
                case "ipc" -> socket(requests, unix, size, ns);
                case "loopback" -> socket(requests, tcp, size, ns);
                case "kafka" -> kafka(requests, unix, words[3], words[4], options, size, ns);
                default -> throw new IllegalArgumentException(words[0]);
            }
        }
    }

    private static Totals sendFor(long ns, int size, Hop hop) throws Exception {
        long number = 0;
        for (long end = System.nanoTime() + ns; System.nanoTime() < end; ) {
            for (int i = 0; i < BETWEEN_CLOCKS; i++) {
                hop.take(Totals.record(size, number++));
            }
        }
        return Totals.ofSent(number, size);
    }

    private static double since(long begin) {
        return (System.nanoTime() - begin) / 1e9;
    }

    private static void call(Requests requests, int size, long ns) throws Exception {
        Totals received = new Totals();
        long begin = System.nanoTime();
        Totals sent = sendFor(ns, size, received::add);
        requests.answer(sent, received, since(begin), Requests.place(Requests.here(), Requests.here()));
    }

    private static void queue(Requests requests, int size, long ns) throws Exception {
        ArrayBlockingQueue<byte[]> queue = new ArrayBlockingQueue<>(QUEUE_RECORDS);
        Totals received = new Totals();
        long[] there = new long[2];
        Thread taker = new Thread(() -> {
            System.arraycopy(Requests.here(), 0, there, 0, 2);
            try {
                for (byte[] record; (record = queue.take()) != END; ) {
                    received.add(record);
                }
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        });
        taker.start();
        long begin = System.nanoTime();
        Totals sent = sendFor(ns, size, queue::put);
        queue.put(END);
        taker.join();
        requests.answer(sent, received, since(begin), Requests.place(Requests.here(), there));
    }

    private static void socket(Requests requests, SocketAddress address, int size, long ns) throws Exception {
        try (SocketChannel channel = SocketChannel.open(address)) {
            Frames frames = new Frames(channel);
            frames.put(END); // no topic: the records follow
            frames.flush();
            frames.next(); // it is ready
            long begin = System.nanoTime();
            Totals sent = sendFor(ns, size, frames::put);
            frames.end();
            long[] told = frames.totals();
            requests.answer(sent, Totals.of(told[0], told[1], told[2]), since(begin),
                    Requests.place(Requests.here(), new long[] {told[3], told[4]}));
        }
    }

    private static void kafka(Requests requests, SocketAddress control, String bootstrap, String topic,
            List<String> options, int size, long ns) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        for (String option : options) {
            settings.put(option.substring(0, option.indexOf('=')), option.substring(option.indexOf('=') + 1));
        }
        try (SocketChannel channel = SocketChannel.open(control);
                KafkaProducer<byte[], byte[]> producer =
                        new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            Frames frames = new Frames(channel);
            frames.put((bootstrap + " " + topic).getBytes(StandardCharsets.UTF_8));
            frames.flush();
            frames.next();
            producer.partitionsFor(topic);
            long begin = System.nanoTime();
            Totals sent = sendFor(ns, size, record -> producer.send(new ProducerRecord<>(topic, 0, null, record)));
            producer.send(new ProducerRecord<>(topic, 0, null, null)).get();
            long[] told = frames.totals();
            requests.answer(sent, Totals.of(told[0], told[1], told[2]), since(begin),
                    Requests.place(Requests.here(), new long[] {told[3], told[4]}));
        }
    }

    // ---------------------------------------------------------------- receiving

    private static void receive(Requests requests, SocketAddress address) throws Exception {
        try (ServerSocketChannel unix = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
                ServerSocketChannel tcp = ServerSocketChannel.open()) {
            unix.bind(address);
            tcp.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            serve(unix);
            serve(tcp);
            requests.say(Integer.toString(((InetSocketAddress) tcp.getLocalAddress()).getPort()));
            requests.next(); // until the measuring program hangs up
        }
        System.exit(0);
    }

    private static void serve(ServerSocketChannel door) {
        new Thread(() -> {
            while (door.isOpen()) {
                try (SocketChannel channel = door.accept()) {
                    serve(new Frames(channel));
                } catch (IOException failed) {
                    if (door.isOpen()) {
                        failed.printStackTrace();
                        System.exit(1);
                    }
                }
            }
        }).start();
    }

    private static void serve(Frames frames) throws IOException {
        String topic = new String(frames.next(), StandardCharsets.UTF_8);
        Totals totals = topic.isEmpty() ? ofSocket(frames) : ofKafka(frames, topic.split(" "));
        long[] here = Requests.here();
        frames.tell(totals.records, totals.bytes, totals.sum, here[0], here[1]);
    }

    private static Totals ofSocket(Frames frames) throws IOException {
        Totals totals = new Totals();
        frames.put(END);
        frames.flush();
        for (byte[] record; (record = frames.next()) != null; ) {
            totals.add(record);
        }
        return totals;
    }

    private static Totals ofKafka(Frames frames, String[] words) throws IOException {
        Totals totals = new Totals();
        TopicPartition partition = new TopicPartition(words[1], 0);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                Map.of("bootstrap.servers", words[0]), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 0);
            consumer.poll(Duration.ofMillis(100)); // connect before the clock starts
            frames.put(END);
            frames.flush();
            while (true) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                    if (record.value() == null) {
                        return totals;
                    }
                    totals.add(record.value());
                }
            }
        }
    }

    /** Records on a socket, each behind its length, collected in a buffer as large as one of Flink's network buffers. */
    private static class Frames {
        private static final int BUFFER_BYTES = 32 * 1024;
        private static final int OVER = -1; // in the place of a length

        private final SocketChannel channel;
        private final ByteBuffer out = ByteBuffer.allocateDirect(BUFFER_BYTES);
        private final ByteBuffer in = ByteBuffer.allocateDirect(BUFFER_BYTES).limit(0);

        Frames(SocketChannel channel) {
            this.channel = channel;
        }

        void put(byte[] record) throws IOException {
            if (out.remaining() < Integer.BYTES + record.length) {
                flush();
            }
            out.putInt(record.length).put(record);
        }

        void end() throws IOException {
            if (out.remaining() < Integer.BYTES) {
                flush();
            }
            out.putInt(OVER);
            flush();
        }

        void tell(long... numbers) throws IOException {
            flush();
            for (long number : numbers) {
                out.putLong(number);
            }
            flush();
        }

        void flush() throws IOException {
            out.flip();
            while (out.hasRemaining()) {
                channel.write(out);
            }
            out.clear();
        }

        /** The next record; null at the end. */
        byte[] next() throws IOException {
            fill(Integer.BYTES);
            int length = in.getInt();
            if (length == OVER) {
                return null;
            }
            fill(length);
            byte[] record = new byte[length];
            in.get(record);
            return record;
        }

        /** What the receiver has seen, and its place. */
        long[] totals() throws IOException {
            fill(5 * Long.BYTES);
            return new long[] {in.getLong(), in.getLong(), in.getLong(), in.getLong(), in.getLong()};
        }

        private void fill(int bytes) throws IOException {
            if (in.remaining() >= bytes) {
                return;
            }
            in.compact();
            while (in.position() < bytes) {
                if (channel.read(in) < 0) {
                    throw new EOFException("The other side has hung up.");
                }
            }
            in.flip();
        }
    }
}
