"""Maintenance commands: optimize, cluster, vacuum, restore, clone, convert, manifests."""
