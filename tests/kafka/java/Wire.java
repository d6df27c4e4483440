import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * The pipe between the tests and this program: big-endian numbers, and strings as a count of
 * UTF-16 units (-1 for null) followed by the units, so that any Java string passes unharmed.
 */
final class Wire {
    private final DataInputStream in;
    private final DataOutputStream out;

    Wire(InputStream in, OutputStream out) {
        this.in = new DataInputStream(new BufferedInputStream(in, 1 << 16));
        this.out = new DataOutputStream(new BufferedOutputStream(out, 1 << 16));
    }

    int readByteOrEnd() throws IOException {
        return in.read();
    }

    boolean readBoolean() throws IOException {
        return in.readBoolean();
    }

    int readInt() throws IOException {
        return in.readInt();
    }

    long readLong() throws IOException {
        return in.readLong();
    }

    String readString() throws IOException {
        int units = in.readInt();
        if (units < 0) {
            return null;
        }
        char[] text = new char[units];
        for (int i = 0; i < units; i++) {
            text[i] = in.readChar();
        }
        return new String(text);
    }

    List<String> readStrings() throws IOException {
        int count = in.readInt();
        List<String> strings = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            strings.add(readString());
        }
        return strings;
    }

    void writeInt(int value) throws IOException {
        out.writeInt(value);
    }

    void writeLong(long value) throws IOException {
        out.writeLong(value);
    }

    void writeInts(List<Integer> values) throws IOException {
        out.writeInt(values.size());
        for (int value : values) {
            out.writeInt(value);
        }
    }

    /** Rows of equal width: the number of rows, the width, then every value. */
    void writeRows(List<List<Integer>> rows) throws IOException {
        out.writeInt(rows.size());
        out.writeInt(rows.isEmpty() ? 0 : rows.get(0).size());
        for (List<Integer> row : rows) {
            for (int value : row) {
                out.writeInt(value);
            }
        }
    }

    void writeString(String text) throws IOException {
        if (text == null) {
            out.writeInt(-1);
            return;
        }
        out.writeInt(text.length());
        out.write(text.getBytes(StandardCharsets.UTF_16BE));
    }

    void writeError(Exception error) throws IOException {
        out.writeByte(1);
        writeString(error.getClass().getName());
        writeString(error.getMessage());
    }

    void writeSuccess() throws IOException {
        out.writeByte(0);
    }

    void flush() throws IOException {
        out.flush();
    }
}
