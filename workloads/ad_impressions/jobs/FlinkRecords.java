import org.apache.flink.api.common.typeinfo.TypeInformation;

/** What goes from operator to operator. */
public final class FlinkRecords {
    /** A record of the topic by its place, wherever it was read. */
    public record Logged(int partition, long offset, boolean fromFile, byte[] value) {
        static final TypeInformation<Logged> TYPE = TypeInformation.of(Logged.class);
    }

    /** An event that counts. */
    public record Counted(String key, long timeMs, int partition, long offset) {
        static final TypeInformation<Counted> TYPE = TypeInformation.of(Counted.class);
    }

    /** A cell as it stands. */
    public record Total(String key, long windowMs, long total) {
        static final TypeInformation<Total> TYPE = TypeInformation.of(Total.class);
    }

    /** How far a partition is: the first offset that was not read, and the time of its newest event. */
    public record Reach(int partition, long next, long newestMs) {
        static final TypeInformation<Reach> TYPE = TypeInformation.of(Reach.class);
    }

    private FlinkRecords() {}
}
