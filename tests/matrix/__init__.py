"""The versions of Python and Spark, and the kinds of session, that tablelog is tested with (`make test-matrix`)."""
