import java.io.Serializable;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** The records that one side of a hop has seen. Each record is a new array, and its first eight bytes are its number. */
public class Totals implements Serializable {
    private static final VarHandle NUMBER = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

    long records, bytes, sum;
    private transient byte[] last; // a record that nobody holds would never be allocated

    static byte[] record(int size, long number) {
        byte[] record = new byte[size];
        NUMBER.set(record, 0, number);
        return record;
    }

    static Totals of(long records, long bytes, long sum) {
        Totals totals = new Totals();
        totals.records = records;
        totals.bytes = bytes;
        totals.sum = sum;
        return totals;
    }

    /** The records 0 to `records` - 1, all of one size. */
    static Totals ofSent(long records, int size) {
        return of(records, records * size, records * (records - 1) / 2);
    }

    void add(byte[] record) {
        records++;
        bytes += record.length;
        sum += (long) NUMBER.get(record, 0);
        last = record;
    }

    @Override
    public String toString() {
        return "[" + records + ", " + bytes + ", " + sum + "]";
    }
}
