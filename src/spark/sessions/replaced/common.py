"""What the replacements of several kinds of methods share."""

from collections.abc import Callable
from typing import Any, TypeAlias

from ....engine.jvm import builders
from ..enabled_sessions import is_enabled

Method: TypeAlias = Callable[..., Any]
Patch: TypeAlias = Callable[[Method], Method]


def is_delta(builder: Any, format: str | None) -> bool:  # noqa: A002
    name = format if isinstance(format, str) else builders.source(builder)
    return name.lower() == "delta" and is_enabled(builders.session_of(builder))


def run_explained(
    original: Method,
    self: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    refusal_of: Callable[[Exception], Exception | None],
) -> Any:
    """Run Spark's method; if it fails because Spark has no Delta source, raise an error with an alternative."""
    try:
        return original(self, *args, **kwargs)
    except Exception as error:
        refusal = refusal_of(error)
        if refusal is None:
            raise
        raise refusal from error


def explained_by_catalog(name: str) -> Patch:
    def patch(original: Method) -> Method:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_enabled(builders.session_of(self)):
                return original(self, *args, **kwargs)
            from ...sql.refusals import of_catalog

            return run_explained(original, self, args, kwargs, lambda error: of_catalog(error, name))

        return method

    return patch


def explained_by_writer(writer_name: str, name: str) -> Patch:
    def patch(original: Method) -> Method:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_enabled(builders.session_of(self)):
                return original(self, *args, **kwargs)
            from ...sql.refusals import of_writer

            return run_explained(original, self, args, kwargs, lambda error: of_writer(error, writer_name, name))

        return method

    return patch
