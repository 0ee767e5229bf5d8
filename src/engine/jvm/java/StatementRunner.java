package tablelog;

import java.util.function.Supplier;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.connector.ExternalCommandRunner;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;

// Runs one statement of a SQL script by a call to Python.
public class StatementRunner implements ExternalCommandRunner {
    private final Supplier statement;

    public StatementRunner(Supplier statement) {
        this.statement = statement;
    }

    // The answer of Python is a Java exception, a text, or the condition, the SQLSTATE and the text of an error.
    public String[] executeCommand(String command, CaseInsensitiveStringMap options) {
        Object answer = statement.get();
        if (answer instanceof Throwable) Platform.throwException((Throwable) answer);
        String[] parts = ((String) answer).split("\0", 3);
        if (parts.length == 1) return parts;
        if (parts[0].isEmpty()) throw new RuntimeException(parts[2]);
        throw new StatementError(parts[0], parts[1], parts[2]);
    }

    // The handlers of a script catch only errors with a condition.
    public static class StatementError extends RuntimeException implements SparkThrowable {
        private final String condition;
        private final String sqlState;

        public StatementError(String condition, String sqlState, String message) {
            super(message);
            this.condition = condition;
            this.sqlState = sqlState;
        }

        public String getCondition() {
            return condition;
        }

        public String getSqlState() {
            return sqlState;
        }
    }
}
