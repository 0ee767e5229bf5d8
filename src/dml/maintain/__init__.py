"""Commands that keep a table in order: optimize, cluster, vacuum, restore, clone, convert, manifests."""
