// The catalog that `table_catalog.py` puts in front of a session's own. Janino, Spark's own compiler, compiles it when a
// session is enabled. The parts between "since 4.3" and "end" are for Spark 4.3 and later.
package tablelog;

import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.regex.Pattern;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.unsafe.Platform;
import scala.Option;
// since 4.3
import org.apache.spark.sql.connector.catalog.TableContext;
import org.apache.spark.sql.connector.catalog.TimeTravel;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
// end

public class DeltaSessionCatalog extends DelegatingCatalogExtension {
    private static final Pattern PATH = Pattern.compile("/|[A-Za-z][A-Za-z0-9+.-]*:/");
    private static final Map NO_OPTIONS = Collections.emptyMap();
    private static final String[] READ_OPTIONS = {
        "readChangeFeed", "readChangeData", "readRowIds",
        "startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp"
    };
    private final BiFunction tables;
    private final TableCatalog catalog;
    private final SessionCatalog session;

    public DeltaSessionCatalog(BiFunction tables, TableCatalog catalog, SessionCatalog session) {
        this.tables = tables;
        this.catalog = catalog;
        this.session = session;
        setDelegateCatalog(catalog);
    }

    public Table loadTable(final Identifier ident) throws NoSuchTableException {
        return loaded(ident, use(), "", "", NO_OPTIONS, new Loader() {
            public Table load() throws NoSuchTableException {
                return catalog.loadTable(ident);
            }
        });
    }

    public Table loadTable(final Identifier ident, final Set privileges) throws NoSuchTableException {
        return loaded(ident, "write", "", "", NO_OPTIONS, new Loader() {
            public Table load() throws NoSuchTableException {
                return catalog.loadTable(ident, privileges);
            }
        });
    }

    public Table loadTable(final Identifier ident, final String version) throws NoSuchTableException {
        return loaded(ident, use(), version, "", NO_OPTIONS, new Loader() {
            public Table load() throws NoSuchTableException {
                return catalog.loadTable(ident, version);
            }
        });
    }

    public Table loadTable(final Identifier ident, final long timestamp) throws NoSuchTableException {
        return loaded(ident, use(), "", Long.toString(timestamp), NO_OPTIONS, new Loader() {
            public Table load() throws NoSuchTableException {
                return catalog.loadTable(ident, timestamp);
            }
        });
    }
    // since 4.3
    public Table loadTable(
            final Identifier ident, final TableContext context, final CaseInsensitiveStringMap options)
            throws NoSuchTableException {
        String use = context.writePrivileges().isEmpty() ? use() : "write";
        String version = "";
        String timestamp = "";
        if (context.timeTravel().isPresent()) {
            Object moment = context.timeTravel().get();
            if (moment instanceof TimeTravel.AsOfVersion) version = ((TimeTravel.AsOfVersion) moment).version();
            else timestamp = Long.toString(((TimeTravel.AsOfTimestamp) moment).micros());
        }
        return loaded(ident, use, version, timestamp, options.asCaseSensitiveMap(), new Loader() {
            public Table load() throws NoSuchTableException {
                return catalog.loadTable(ident, context, options);
            }
        });
    }

    // Spark gives `loadTable` only these options, and resolves tables with other values of them as other tables.
    public Set tableStateOptionKeys() {
        Set keys = new HashSet(catalog.tableStateOptionKeys());
        keys.addAll(Arrays.asList(READ_OPTIONS));
        return keys;
    }
    // end
    private interface Loader {
        Table load() throws NoSuchTableException;
    }

    // A Delta table from Python, and each other table from the catalog below, by `below`.
    private Table loaded(Identifier ident, String use, String version, String timestamp, Map options, Loader below)
            throws NoSuchTableException {
        if (isPath(ident)) return deltaTable(ident, null, use, version, timestamp, options);
        CatalogTable entry;
        try {
            Table table = below.load();
            if (!isDelta(table)) return table;
            entry = entry(ident);
        } catch (Throwable error) {
            entry = entryAfter(error, ident);
        }
        return deltaTable(ident, entry, use, version, timestamp, options);
    }

    public boolean tableExists(Identifier ident) {
        if (isPath(ident)) return tables.apply(request(ident, "exists", "", "", NO_OPTIONS), null) != null;
        return catalog.tableExists(ident);
    }

    // A path has no entry, and Spark's own catalog would say nothing.
    public boolean dropTable(Identifier ident) {
        if (isPath(ident)) throw new UnsupportedOperationException(
            "delta.`" + ident.name() + "` has no entry in the catalog: nothing was dropped. Remove its directory.");
        return catalog.dropTable(ident);
    }

    public boolean purgeTable(Identifier ident) {
        return isPath(ident) ? dropTable(ident) : catalog.purgeTable(ident);
    }

    // Spark's own catalog would change only its entry, not the log.
    public Table alterTable(Identifier ident, TableChange[] changes) throws NoSuchTableException {
        if (isPath(ident)) return deltaTable(ident, null, "alter", "", "", NO_OPTIONS);
        CatalogTable entry = null;
        try {
            entry = entry(ident);
        } catch (Exception missing) {
            // The session catalog raises the error.
        }
        if (entry != null && isDelta(entry)) return deltaTable(ident, entry, "alter", "", "", NO_OPTIONS);
        return catalog.alterTable(ident, changes);
    }

    private static boolean isPath(Identifier ident) {
        String[] namespace = ident.namespace();
        boolean isDelta = namespace.length == 1 && namespace[0].equalsIgnoreCase("delta");
        return isDelta && PATH.matcher(ident.name()).lookingAt();
    }

    private static boolean isDelta(Table table) {
        return "delta".equalsIgnoreCase((String) table.properties().get(TableCatalog.PROP_PROVIDER));
    }

    private static boolean isDelta(CatalogTable entry) {
        return entry.provider().toString().equalsIgnoreCase("Some(delta)");
    }

    private CatalogTable entry(Identifier ident) throws Exception {
        return session.getTableMetadata(new TableIdentifier(ident.name(), Option.apply(ident.namespace()[0])));
    }

    // The entry of a Delta table for which Spark's own catalog failed, because it knows no source of that name.
    private CatalogTable entryAfter(Throwable error, Identifier ident) {
        try {
            String condition = error instanceof SparkThrowable ? ((SparkThrowable) error).getCondition() : "";
            if ("DATA_SOURCE_NOT_FOUND".equals(condition)) {
                CatalogTable entry = entry(ident);
                if (isDelta(entry)) return entry;
            }
        } catch (Exception gone) {
            // Spark's own error has more details.
        }
        Platform.throwException(error);
        return null;
    }

    // What Spark wants the table for. A command must not get the table of a query, whose files Spark could change.
    private static String use() {
        StackTraceElement[] frames = new Throwable().getStackTrace();
        for (int i = 0; i < frames.length; i++) {
            if (frames[i].getMethodName().equals("resolveRelation")) return "query";
        }
        return "command";
    }

    private Table deltaTable(
            Identifier ident, CatalogTable entry, String use, String version, String timestamp, Map options) {
        return (Table) tables.apply(request(ident, use, version, timestamp, options), entry);
    }

    // Texts of a statement may contain the separator; the name comes last and may too.
    private static String request(Identifier ident, String use, String version, String timestamp, Map options) {
        StringBuilder request = new StringBuilder();
        request.append(use).append('\0').append(text(version)).append('\0').append(timestamp);
        request.append('\0').append(options.size());
        for (Iterator entries = options.entrySet().iterator(); entries.hasNext();) {
            Map.Entry option = (Map.Entry) entries.next();
            request.append('\0').append(text(option.getKey())).append('\0').append(text(option.getValue()));
        }
        String[] namespace = ident.namespace();
        request.append('\0').append(namespace.length);
        for (int i = 0; i < namespace.length; i++) request.append('\0').append(namespace[i]);
        return request.append('\0').append(ident.name()).toString();
    }

    private static String text(Object value) {
        return String.valueOf(value).replace('\0', ' ');
    }
}
