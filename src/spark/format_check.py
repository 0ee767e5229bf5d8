"""The check that no other format is written into a Delta table: what classic and Connect sessions have in common."""

from collections.abc import Iterator, Mapping

from ..errors import InvalidArgumentError
from ..settings.declarations import FORMAT_CHECK


def locations(path: object, options: Mapping[str, object]) -> Iterator[str]:
    """The directories that a writer names: its path, and its options `path` and `location` (in any case)."""
    named = (value for key, value in options.items() if key.lower() in ("path", "location"))
    for location in (path, *named):
        if isinstance(location, str) and location:
            yield location


def refusal(location: str) -> InvalidArgumentError:
    """The error for a write in another format to a location of a Delta table."""
    return InvalidArgumentError(
        f"There is a Delta table at {location}: files of another format would not be part of it, and an overwrite "
        'would delete it with its log. Nothing was written. Use df.write.format("delta") to write to the table, '
        f"choose another directory, or set {FORMAT_CHECK.key} to false."
    )
