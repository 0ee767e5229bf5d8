"""Commands: each takes a table and its arguments, runs Spark jobs, and commits actions to the Delta log."""

from .command.command import register_post_commit_step
from .maintain import auto_compact

register_post_commit_step("its small files were not compacted after it", auto_compact.run)
