import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.resps.ScanResult;

/** Which records are events that count, and by what: views by campaign, unless a job's config says otherwise. */
final class AdViews implements Serializable {
    /** What the query needs of an event. */
    record View(String key, long timeMs) {}

    private static final JsonFactory PARSERS = new JsonFactory();
    private static final long YEAR_10000_MS = 253_402_300_800_000L;
    private final Set<String> counts;
    private final boolean byAd;
    private final HashMap<String, String> ads;

    /** `options`: those of the run config. */
    AdViews(Map<String, String> options, HashMap<String, String> ads) {
        this.counts = Set.of(options.getOrDefault("streamgauge.counts", "view").split("\\+"));
        this.byAd = "ad".equals(options.get("streamgauge.by"));
        this.ads = ads;
    }

    /** Ad -> campaign. The benchmark keeps each pair as a plain string; all else there has another type or key. */
    static HashMap<String, String> readAds(Jedis redis, String prefix) {
        HashMap<String, String> ads = new HashMap<>();
        ScanParams ours = new ScanParams().match(prefix + "*").count(5000);
        String cursor = ScanParams.SCAN_POINTER_START;
        do {
            ScanResult<String> page = redis.scan(cursor, ours, "string");
            String[] keys = page.getResult().stream()
                    .filter(key -> key.length() == prefix.length() + 36)
                    .toArray(String[]::new);
            List<String> campaigns = keys.length == 0 ? List.of() : redis.mget(keys);
            IntStream.range(0, campaigns.size()).forEach(each -> ads.put(keys[each].substring(prefix.length()), campaigns.get(each)));
            cursor = page.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        return ads;
    }

    /** Null for all that does not count. Broken UTF-8 is mended, and judged by what is left. */
    View view(byte[] value) {
        String ad = null;
        String kind = null;
        String time = null;
        if (value == null) {
            return null;
        }
        try (JsonParser parser = PARSERS.createParser(new String(value, StandardCharsets.UTF_8))) {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                return null;
            }
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String field = parser.currentName();
                String text = parser.nextToken() == JsonToken.VALUE_STRING ? parser.getText() : null;
                parser.skipChildren();
                switch (field) {
                    case "ad_id" -> ad = text;
                    case "event_type" -> kind = text;
                    case "event_time" -> time = text;
                    default -> {}
                }
            }
            if (parser.nextToken() != null) {
                return null; // more than one value
            }
        } catch (IOException torn) {
            return null;
        }
        if (ad == null || !ads.containsKey(ad) || kind == null || !counts.contains(kind) || !isTime(time)) {
            return null;
        }
        return new View(byAd ? "ad:" + ad : ads.get(ad), Long.parseLong(time));
    }

    private static boolean isTime(String text) {
        boolean isNumber = text != null
                && !text.isEmpty()
                && text.length() <= 18
                && text.chars().allMatch(each -> each >= '0' && each <= '9');
        return isNumber && Long.parseLong(text) < YEAR_10000_MS;
    }
}
