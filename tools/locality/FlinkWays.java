import java.util.Map;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.accumulators.LongCounter;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Sends records over one hop between two operators of a Flink job, which runs on a cluster that is there.
 *
 * <pre>java FlinkWays PORT REST_PORT</pre>
 *
 * These classes are on the cluster's own class path: those that come with a job would be compiled anew for each job.
 */
public class FlinkWays {
    private static final String OTHER_SLOT = "other";

    public static void main(String[] words) throws Exception {
        try (Requests requests = new Requests(Integer.parseInt(words[0]))) {
            for (String[] asked; (asked = requests.next()) != null; ) {
                run(requests, asked[0], Integer.parseInt(asked[1]), Long.parseLong(asked[2]), words[1]);
            }
        }
    }

    private static void run(Requests requests, String way, int size, long ms, String restPort) throws Exception {
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.createRemoteEnvironment(
                "127.0.0.1", Integer.parseInt(restPort), new Configuration());
        flink.setParallelism(1);
        if (way.equals("reused")) {
            flink.getConfig().enableObjectReuse();
        }
        SingleOutputStreamOperator<byte[]> made =
                flink.fromSequence(1, 1).flatMap(new Make(size, ms));
        SingleOutputStreamOperator<byte[]> counted = made.flatMap(new Count());
        switch (way) {
            case "chained", "reused" -> {}
            case "unchained" -> counted.startNewChain();
            case "apart" -> counted.slotSharingGroup(OTHER_SLOT);
            default -> throw new IllegalArgumentException(way);
        }
        counted.sinkTo(new DiscardingSink<>());
        JobExecutionResult result = flink.execute("locality-" + way);
        Map<String, Object> found = result.getAllAccumulatorResults();
        Totals sent = Totals.ofSent(number(found, "sent"), size);
        Totals received = Totals.of(number(found, "records"), number(found, "bytes"), number(found, "sum"));
        double tookS = (number(found, "end") - number(found, "begin")) / 1e3;
        requests.answer(sent, received, tookS, Requests.place(place(found, "from"), place(found, "to")));
    }

    private static long number(Map<String, Object> found, String name) {
        return (long) found.get(name);
    }

    private static long[] place(Map<String, Object> found, String side) {
        return new long[] {number(found, side + ".process"), number(found, side + ".thread")};
    }

    private static void tell(RuntimeContext context, String name, long number) {
        LongCounter counter = new LongCounter(number);
        context.addAccumulator(name, counter);
    }

    private static void tellPlace(RuntimeContext context, String side) {
        long[] here = Requests.here();
        tell(context, side + ".process", here[0]);
        tell(context, side + ".thread", here[1]);
    }

    /** Makes records for some time, out of the one element that it gets. */
    public static class Make extends RichFlatMapFunction<Long, byte[]> {
        private static final int BETWEEN_CLOCKS = 256;
        private final int size;
        private final long ms;

        Make(int size, long ms) {
            this.size = size;
            this.ms = ms;
        }

        @Override
        public void flatMap(Long ignored, Collector<byte[]> out) {
            tellPlace(getRuntimeContext(), "from");
            tell(getRuntimeContext(), "begin", System.currentTimeMillis());
            long number = 0;
            for (long end = System.nanoTime() + ms * 1_000_000; System.nanoTime() < end; ) {
                for (int i = 0; i < BETWEEN_CLOCKS; i++) {
                    out.collect(Totals.record(size, number++));
                }
            }
            tell(getRuntimeContext(), "sent", number);
        }
    }

    /** Counts the records, and hands nothing on. */
    public static class Count extends RichFlatMapFunction<byte[], byte[]> {
        private final Totals totals = new Totals();

        @Override
        public void flatMap(byte[] record, Collector<byte[]> out) {
            totals.add(record);
        }

        @Override
        public void close() {
            RuntimeContext context = getRuntimeContext();
            tell(context, "end", System.currentTimeMillis());
            tellPlace(context, "to");
            tell(context, "records", totals.records);
            tell(context, "bytes", totals.bytes);
            tell(context, "sum", totals.sum);
        }
    }
}
