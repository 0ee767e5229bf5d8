"""TPC-H and TPC-DS by SQL on Delta tables, at scale 0.1 (`make test-tpc`)."""
