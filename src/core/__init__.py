"""The protocol: actions, snapshot and commit, on any store, with no Spark."""
