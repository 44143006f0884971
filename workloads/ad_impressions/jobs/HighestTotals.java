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

    HighestTotals(Jedis redis) {
        this.redis = redis;
    }

    static Jedis connect(String url) {
        return new Jedis(URI.create(url), PATIENCE_MS);
    }

    /** Key -> start of the window in ms -> total. It returns when Redis has all of them. */
    synchronized void write(Map<String, Map<Long, Long>> totals) {
        List<Response<Object>> answers = new ArrayList<>();
        try (Pipeline pipeline = redis.pipelined()) {
            totals.forEach((key, windows) ->
                    answers.add(pipeline.eval(WRITE_IF_HIGHER, List.of(key, "updated:" + key), words(windows))));
        }
        answers.forEach(Response::get); // what Redis has against one of them is thrown here
    }

    private static List<String> words(Map<Long, Long> windows) {
        List<String> words = new ArrayList<>(List.of(Long.toString(System.currentTimeMillis())));
        windows.forEach((start, total) -> words.addAll(List.of(start.toString(), total.toString())));
        return words;
    }
}
