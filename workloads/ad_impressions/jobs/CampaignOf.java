import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.ScalarFunction;

/**
 * campaign_of(ad_id): the campaign of an ad, null for one that nobody knows.
 *
 * The table is a file of lines "ad,campaign". Its path comes from the environment: where Flink computes watermarks, a
 * function is not given the parameters of its job.
 */
public class CampaignOf extends ScalarFunction {
    private transient Map<String, String> campaigns;

    @Override
    public void open(FunctionContext context) throws IOException {
        campaigns = new HashMap<>();
        for (String line : Files.readAllLines(Path.of(System.getenv("STREAMGAUGE_ADS")))) {
            int comma = line.indexOf(',');
            campaigns.put(line.substring(0, comma), line.substring(comma + 1));
        }
    }

    public String eval(String ad) {
        return campaigns.get(ad);
    }
}
