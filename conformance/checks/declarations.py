"""Check 17: what the store declares is what it does."""

from ..failures import require
from ..model import Context
from .suite import check


@check(17, guarantee=0)
def declares_what_it_is(context: Context) -> None:
    """The three declarations are there, and the log can be kept on such a store."""
    store = context.make()
    require(store.exclusion in {"process", "host", "global"}, f"exclusion is {store.exclusion!r}")
    require(isinstance(store.atomic_overwrite, bool), "atomic_overwrite is no bool")
    require(
        store.partial_writes_visible is False, "the store says that partial writes are visible: no log is safe there"
    )
