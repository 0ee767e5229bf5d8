"""Streams of Delta tables: `readStream` and `writeStream`."""
