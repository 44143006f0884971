import java.io.IOException;
import java.nio.file.Path;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;

/** The places of events that were dropped as late, a line each, before anybody is told that what holds them is done. */
final class LateSink implements Sink<FlinkRecords.Counted> {
    private final String path;

    LateSink(Path path) {
        this.path = path.toString();
    }

    @Override
    public SinkWriter<FlinkRecords.Counted> createWriter(WriterInitContext context) throws IOException {
        return new Writer(new Lines(Path.of(path)));
    }

    private record Writer(Lines lines) implements SinkWriter<FlinkRecords.Counted> {
        @Override
        public void write(FlinkRecords.Counted late, Context context) throws IOException {
            lines.add("[" + late.partition() + "," + late.offset() + "]");
        }

        @Override
        public void flush(boolean endOfInput) {}

        @Override
        public void close() throws IOException {
            lines.close();
        }
    }
}
