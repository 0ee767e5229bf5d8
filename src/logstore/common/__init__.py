"""What the stores share: URIs, listings, HTTP clients, conditional requests, steps of a safe write on POSIX."""
