import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import javax.net.ssl.SSLSocket;
import org.apache.spark.sql.ForeachWriter;
import org.apache.spark.sql.Row;

/**
 * Writes each count to Redis the moment the query gives it out: one command and one packet a row, never held back.
 *
 * Rows are (campaign, window start in ms, count) and in checksum mode the sums. The answers are read as they come, so
 * that no row waits for the one before it; what Redis has against a write, or a connection that is gone, fails the
 * task with the next row, and at the latest when the batch ends, before Spark commits it.
 */
public class RedisWriter extends ForeachWriter<Row> {
    private static final int TIMEOUT_MS = 60_000;
    private static final int MOST_UNANSWERED = 1_000;

    // KEYS: counts, times of update, sums. ARGV: window, count, time, sums where there are some.
    private static final String WRITE = """
            redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
            redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
            if ARGV[4] then
              redis.call('HSET', KEYS[3], ARGV[1], ARGV[4])
            end
            return 1
            """;
    private static final String UNLESS_LARGER = """
            if tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0') > tonumber(ARGV[2]) then
              return 0
            end
            """;

    private final String address;
    private final String host;
    private final int port;
    private final String user;
    private final String password;
    private final int database;
    private final String prefix;
    private final String script;

    private transient Socket socket;
    private transient OutputStream out;
    private transient InputStream in;
    private transient int unanswered;

    /** All keys begin with `prefix`. With `rising`, a count that is larger than the one to be written stays. */
    public RedisWriter(
            String address,
            String host,
            int port,
            String user,
            String password,
            int database,
            String prefix,
            boolean rising) {
        this.address = address;
        this.host = host;
        this.port = port;
        this.user = user;
        this.password = password;
        this.database = database;
        this.prefix = prefix;
        this.script = (rising ? UNLESS_LARGER : "") + WRITE;
    }

    @Override
    public boolean open(long partition, long batch) {
        unanswered = 0;
        socket = new Socket();
        try {
            socket.connect(new InetSocketAddress(host, port), TIMEOUT_MS);
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(TIMEOUT_MS);
            if (address.startsWith("rediss:")) {
                socket = secured(socket);
            }
            out = socket.getOutputStream();
            in = new BufferedInputStream(socket.getInputStream());
            introduce();
            readAnswers(0);
        } catch (IOException error) {
            closeQuietly();
            throw failure(error);
        }
        return true;
    }

    @Override
    public void process(Row row) {
        String campaign = prefix + row.getString(0);
        String window = Long.toString(row.getLong(1));
        String count = Long.toString(row.getLong(2));
        String now = Long.toString(System.currentTimeMillis());
        String updated = prefix + "updated:" + row.getString(0);
        try {
            if (row.size() == 3) {
                send("EVAL", script, "2", campaign, updated, window, count, now);
            } else {
                String sums = prefix + "sums:" + row.getString(0);
                send("EVAL", script, "3", campaign, updated, sums, window, count, now, row.getString(3));
            }
            readAnswers(MOST_UNANSWERED);
        } catch (IOException error) {
            throw failure(error);
        }
    }

    @Override
    public void close(Throwable earlier) {
        try {
            if (earlier == null) {
                readAnswers(0);
            }
        } catch (IOException error) {
            throw failure(error);
        } finally {
            closeQuietly();
        }
    }

    private SSLSocket secured(Socket plain) throws IOException {
        RedisTls tls = new RedisTls(URI.create(address));
        SSLSocket secure = (SSLSocket) tls.factory().createSocket(plain, host, port, true);
        secure.setSSLParameters(tls.parameters());
        secure.startHandshake();
        return secure;
    }

    private void introduce() throws IOException {
        if (!password.isEmpty() && user.isEmpty()) {
            send("AUTH", password);
        } else if (!password.isEmpty()) {
            send("AUTH", user, password);
        }
        if (database != 0) {
            send("SELECT", Integer.toString(database));
        }
    }

    private void send(String... words) throws IOException {
        ByteArrayOutputStream command = new ByteArrayOutputStream(512);
        command.writeBytes(utf8("*" + words.length + "\r\n"));
        for (String word : words) {
            byte[] content = utf8(word);
            command.writeBytes(utf8("$" + content.length + "\r\n"));
            command.writeBytes(content);
            command.writeBytes(utf8("\r\n"));
        }
        out.write(command.toByteArray());
        unanswered++;
    }

    /** Those that are there, and wait for more only while more than `most` are missing. */
    private void readAnswers(int most) throws IOException {
        while (unanswered > most || unanswered > 0 && in.available() > 0) {
            String answer = readLine();
            unanswered--;
            if (answer.startsWith("-")) {
                throw new IOException("it answered " + answer.substring(1));
            }
        }
    }

    private String readLine() throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream(64);
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                throw new EOFException("it closed the connection and left " + unanswered + " commands unanswered");
            }
            line.write(next);
        }
        return line.toString(StandardCharsets.UTF_8).strip();
    }

    private UncheckedIOException failure(IOException error) {
        String what = "Redis at " + host + ":" + port + " did not take the counts: " + error.getMessage();
        return new UncheckedIOException(what, error);
    }

    private void closeQuietly() {
        try {
            socket.close();
        } catch (IOException error) {
            // All that mattered was answered, or its failure is on its way to Spark already.
        }
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
