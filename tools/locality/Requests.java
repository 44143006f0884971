import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** The connection to the measuring program, which asks for one hop after the other. */
class Requests implements AutoCloseable {
    private final Socket socket;
    private final BufferedReader in;
    private final PrintStream out;

    Requests(int port) throws IOException {
        socket = new Socket(InetAddress.getLoopbackAddress(), port);
        in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
        out = new PrintStream(socket.getOutputStream(), true, StandardCharsets.UTF_8);
    }

    /** The words of the next request: a way, the size of a record, for how many ms to send, and what the way needs. */
    String[] next() throws IOException {
        String line = in.readLine();
        return line == null ? null : line.split(" ");
    }

    void answer(Totals sent, Totals received, double tookS, String place) {
        say("{\"sent\": " + sent + ", \"received\": " + received + ", \"took_s\": " + tookS + ", \"place\": \"" + place
                + "\"}");
    }

    void say(String line) {
        out.println(line);
    }

    /** Where two sides of a hop ran, each a process and a thread. */
    static String place(long[] one, long[] other) {
        return one[0] != other[0] ? "two processes" : one[1] != other[1] ? "two threads" : "one thread";
    }

    static long[] here() {
        return new long[] {ProcessHandle.current().pid(), Thread.currentThread().getId()};
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
