package tablelog;

import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.filter.AbstractFilter;
import org.apache.spark.SparkContext;

// Keeps Spark from logging a row that a write refuses: the command raises a short error about it, and Spark's records,
// two or more of them with a stack trace each, would hide that error.
public class ReportedErrorFilter extends AbstractFilter {
    private static final String[] REPORTED = {
        "tablelog:constraint:",
        "[NOT_NULL_ASSERT_VIOLATION]",
        "[EXCEED_LIMIT_LENGTH]",
        "[CAST_OVERFLOW_IN_TABLE_INSERT]",
    };
    private static final int MOST_CAUSES = 20;

    private boolean installed;

    public Result filter(LogEvent event) {
        if (!event.getLevel().isMoreSpecificThan(Level.WARN)) return Result.NEUTRAL;
        String name = event.getLoggerName();
        if (name == null || !name.startsWith("org.apache.spark.")) return Result.NEUTRAL;
        if (isReported(event.getMessage().getFormattedMessage())) return Result.DENY;
        Throwable cause = event.getThrown();
        for (int i = 0; cause != null && i < MOST_CAUSES; i++) {
            if (isReported(cause.getMessage())) return Result.DENY;
            cause = cause.getCause();
        }
        return Result.NEUTRAL;
    }

    private static boolean isReported(String text) {
        if (text == null) return false;
        for (int i = 0; i < REPORTED.length; i++) {
            if (text.contains(REPORTED[i])) return true;
        }
        return false;
    }

    // A configuration has the filter until it is loaded again. Without log4j's own backend nothing happens.
    public synchronized void install() {
        LoggerContext context = context();
        if (context == null || installed) return;
        installed = true;
        context.getConfiguration().getRootLogger().addFilter(this);
    }

    public synchronized void uninstall() {
        LoggerContext context = context();
        if (context == null || !installed) return;
        installed = false;
        context.getConfiguration().getRootLogger().removeFilter(this);
    }

    // Log4j has a context for each class loader: this is the one of Spark's loggers.
    private static LoggerContext context() {
        Object context = LogManager.getContext(SparkContext.class.getClassLoader(), false);
        return context instanceof LoggerContext ? (LoggerContext) context : null;
    }
}
