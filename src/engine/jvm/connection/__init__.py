"""The connection to the JVM: sessions, calls, callbacks, errors, settings, compiled classes."""
