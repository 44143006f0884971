/** Allocates so many MiB in a thread that ends, and so many in one that lives until its input is at its end. */
public class Allocates {
    static volatile byte[] last;

    public static void main(String[] mebibytes) throws Exception {
        Thread ends = new Thread(() -> allocate(Integer.parseInt(mebibytes[0])));
        ends.start();
        ends.join();
        Thread lives = new Thread(() -> allocateAndStay(Integer.parseInt(mebibytes[1])));
        lives.setDaemon(true);
        lives.start();
        while (System.in.read() >= 0) {}
    }

    static void allocateAndStay(int mebibytes) {
        allocate(mebibytes);
        System.out.println("done");
        try {
            Thread.sleep(Long.MAX_VALUE);
        } catch (InterruptedException error) {
            // nobody does
        }
    }

    /** And lives on for a moment, as the threads of a job do: what is allocated just before the end is seen by nobody. */
    static void allocate(int mebibytes) {
        for (int each = 0; each < mebibytes * 64; each++) {
            last = new byte[16 * 1024 - 16];
        }
        try {
            Thread.sleep(300);
        } catch (InterruptedException error) {
            // nobody does
        }
    }
}
