"""Fuzzing of the parsers: each kind of input that tablelog parses is a target, and two engines make cases for it.

`targets` has one function for each kind. It gets bytes, calls the real parser, and checks what it returns. Only typed
errors may come out of it, in bounded time and memory. `python -m fuzz` runs an engine (`engines`): atheris, which looks
for inputs that reach new code, or Hypothesis. `test_sample` runs a few hundred cases of each target.
"""
