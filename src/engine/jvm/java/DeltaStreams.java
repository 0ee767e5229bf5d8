// The source and the sink by which Spark's streaming engine asks tablelog. Janino, Spark's own compiler, compiles it
// (`streams.py`). What changes only inside the JVM (schema, equality, limits) costs no call to Python.
package tablelog;

import java.util.Map;
import java.util.Optional;
import java.util.function.BiFunction;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.StreamSinkProvider;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.Tuple2;

public class DeltaStreams implements StreamSourceProvider, StreamSinkProvider {
    public static volatile BiFunction python;

    // Python returns the exception that is to be thrown.
    static Object call(BiFunction python, String what, Object argument) {
        Object answer = python.apply(what, argument);
        if (answer instanceof Throwable) {
            Platform.throwException((Throwable) answer);
        }
        return answer;
    }

    // The reader gives the schema with which the query is analyzed.
    public Tuple2 sourceSchema(
            SQLContext context, Option schema, String name, scala.collection.immutable.Map options) {
        return new Tuple2("delta", schema.get());
    }

    public Source createSource(
            SQLContext context,
            String metadata,
            Option schema,
            String name,
            scala.collection.immutable.Map options) {
        Object[] parts = new Object[] {context.sparkSession(), schema.get(), options, metadata};
        return (Source) call(python, "source", parts);
    }

    public Sink createSink(
            SQLContext context,
            scala.collection.immutable.Map options,
            scala.collection.immutable.Seq columns,
            OutputMode mode) {
        return (Sink) call(python, "sink", new Object[] {context.sparkSession(), options, columns, mode.toString()});
    }

    public static class TableSource implements Source, SupportsTriggerAvailableNow, ReportsSourceMetrics {
        private final BiFunction python;
        private final StructType schema;
        private final ReadLimit limit;
        private final String name;
        private final boolean notesCommits;
        private boolean availableNow;

        public TableSource(
                BiFunction python, StructType schema, ReadLimit limit, String name, boolean notesCommits) {
            this.python = python;
            this.schema = schema;
            this.limit = limit;
            this.name = name;
            this.notesCommits = notesCommits;
        }

        public StructType schema() {
            return schema;
        }

        public Option getOffset() {
            throw new UnsupportedOperationException("latestOffset is to be called");
        }

        public ReadLimit getDefaultReadLimit() {
            return limit;
        }

        public void prepareForTriggerAvailableNow() {
            availableNow = true;
        }

        public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
                org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
            String what = limit instanceof ReadAllAvailable ? "latest of all" : "latest";
            if (availableNow) {
                call(python, "available now", null);
                availableNow = false;
            }
            Object end = call(python, what, start == null ? null : start.json());
            return end == null ? null : new TableOffset((String) end);
        }

        public Dataset getBatch(Option start, Offset end) {
            String begin = start.isEmpty() ? "" : ((Offset) start.get()).json();
            return (Dataset) call(python, "batch", begin + "\0" + end.json());
        }

        // The batch up to this offset is written.
        public void commit(Offset end) {
            if (notesCommits) {
                call(python, "committed", end.json());
            }
        }

        public Map metrics(Optional end) {
            Object offset = end.isPresent() ? end.get() : null;
            return (Map) call(
                    python,
                    "metrics",
                    offset == null ? null : ((org.apache.spark.sql.connector.read.streaming.Offset) offset).json());
        }

        public void stop() {}

        public String toString() {
            return name;
        }
    }

    public static class TableOffset extends Offset {
        private final String text;

        public TableOffset(String text) {
            this.text = text;
        }

        public String json() {
            return text;
        }
    }

    public static class TableSink implements Sink {
        private final BiFunction python;
        private final String name;

        public TableSink(BiFunction python, String name) {
            this.python = python;
            this.name = name;
        }

        public void addBatch(long batch, Dataset rows) {
            call(python, Long.toString(batch), rows);
        }

        public String toString() {
            return name;
        }
    }

    // An error of tablelog, with the condition that listeners see.
    public static class TableError extends RuntimeException implements SparkThrowable {
        private final String condition;
        private final String sqlState;

        public TableError(String message, String condition, String sqlState, Throwable cause) {
            super(message, cause);
            this.condition = condition;
            this.sqlState = sqlState;
        }

        public String getCondition() {
            return condition;
        }

        public String getSqlState() {
            return sqlState;
        }

        public String toString() {
            return getMessage();
        }
    }
}
