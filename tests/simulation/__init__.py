"""Seeded schedules of many writers over a store that delays, fails and loses replies; days may pass.

`python -m simulation <seed>` (with `PYTHONPATH=tests`) replays one schedule and prints its trace.
"""
