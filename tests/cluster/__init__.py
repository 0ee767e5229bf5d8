"""Every command and route on Spark's standalone cluster: a master and two workers (`make test-cluster`)."""
