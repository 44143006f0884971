import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;

/**
 * Where the counts of a job go: totals as they stand, and only where they are higher than what is there.
 *
 * After a crash the state of a job goes back to what was complete and counts up again, which nobody who reads the results
 * shall see.
 */
final class HighestTotals {
    private static final int PATIENCE_MS = 60_000;

    // KEYS: totals, times of update. ARGV: time, then window and total in turns. A script runs in one piece.
    private static final String WRITE_IF_HIGHER = """
            for each = 2, #ARGV, 2 do
                if tonumber(redis.call('HGET', KEYS[1], ARGV[each]) or 0) < tonumber(ARGV[each + 1]) then
                    redis.call('HSET', KEYS[1], ARGV[each], ARGV[each + 1])
                    redis.call('HSET', KEYS[2], ARGV[each], ARGV[1])
                end
            end
            """;
    private final Jedis redis;
    private final String prefix;

    /** All keys begin with `prefix`. */
    HighestTotals(Jedis redis, String prefix) {
        this.redis = redis;
        this.prefix = prefix;
    }

    static Jedis connect(String url) {
        URI address = URI.create(url);
        if (!address.getScheme().equals("rediss")) {
            return new Jedis(address, PATIENCE_MS);
        }
        RedisTls tls = new RedisTls(address);
        return new Jedis(address, PATIENCE_MS, tls.factory(), tls.parameters(), null);
    }

    /** Key -> start of the window in ms -> total. It returns when Redis has all of them. */
    synchronized void write(Map<String, Map<Long, Long>> totals) {
        List<Response<Object>> answers = new ArrayList<>();
        try (Pipeline pipeline = redis.pipelined()) {
            totals.forEach((key, windows) -> answers.add(pipeline.eval(
                    WRITE_IF_HIGHER, List.of(prefix + key, prefix + "updated:" + key), words(windows))));
        }
        answers.forEach(Response::get); // what Redis has against one of them is thrown here
    }

    private static List<String> words(Map<Long, Long> windows) {
        List<String> words = new ArrayList<>(List.of(Long.toString(System.currentTimeMillis())));
        windows.forEach((start, total) -> words.addAll(List.of(start.toString(), total.toString())));
        return words;
    }
}
