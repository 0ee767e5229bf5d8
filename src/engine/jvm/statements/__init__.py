"""Parsed statements of Spark's SQL: their kinds and parts, and the plans in which tablelog takes a place."""
