"""Commands: DataFrames in, committed actions out."""

from .command.command import register_post_commit_step
from .maintain import auto_compact

register_post_commit_step("its small files were not compacted after it", auto_compact.run)
