"""Ours against the peers, in one run: `make bench`."""
