"""What a target of fuzzing is, and how one case of it ends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from tablelog.errors import TablelogError

Form = Literal["json", "lines", "text", "binary"]
"""How the seeds are changed: as a JSON value, as lines of JSON, as words, or as bytes."""


@dataclass(frozen=True)
class Target:
    """One kind of input.

    `run` parses the bytes: it returns if they are valid, raises a TablelogError if they aren't, and an AssertionError
    if the answer is wrong. `make_seeds` returns valid inputs. `words` are texts that mean something in this kind of
    input. `seconds` of the processor and `megabytes` of memory are the most that one case may take. The first `keep`
    bytes of an input aren't changed as JSON: they say how it is used.
    """

    name: str
    run: Callable[[bytes], object]
    make_seeds: Callable[[], Sequence[bytes]]
    form: Form
    words: Sequence[str] = ()
    keep: int = 0
    seconds: float = 2.0
    megabytes: int = 64

    @cached_property
    def seeds(self) -> Sequence[bytes]:
        return self.make_seeds()


def is_valid(target: Target, data: bytes) -> bool:
    """Run one case: whether the input is valid. Any exception is a finding."""
    try:
        target.run(data)
    except TablelogError as error:
        if not str(error):
            raise AssertionError("an error without a message") from error
        return False
    return True


def allowed(ask: Callable[[], Any]) -> Any:
    """What `ask` returns, or None if it raises a typed error: for a question about a valid input."""
    try:
        return ask()
    except TablelogError:
        return None
