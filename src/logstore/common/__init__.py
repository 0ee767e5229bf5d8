"""Code that several stores share: URIs, listings, HTTP clients, conditional requests, safe writes on POSIX."""
