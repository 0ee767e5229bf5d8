"""The table of schemes: every store that is built in has its schemes there, and the other places agree."""

import pytest

from tablelog.logstore import store_for
from tablelog.logstore.common import schemes
from tablelog.logstore.common.uri import shown
from tablelog.logstore.registry import new_store_for

BUILT_IN = {name for name, scheme in schemes.SCHEMES.items() if scheme.backend is not None}


def test_a_scheme_that_names_the_same_storage_is_served_alike() -> None:
    for name, scheme in schemes.SCHEMES.items():
        if scheme.same_as is not None:
            other = schemes.SCHEMES[scheme.same_as]
            assert other.same_as is None, name
            assert (scheme.backend, scheme.fsspec, scheme.has_container) == (
                other.backend,
                other.fsspec,
                other.has_container,
            )


@pytest.mark.parametrize("name", sorted(BUILT_IN - {"memory"}))
def test_the_store_of_a_scheme_says_that_it_serves_it(name: str) -> None:
    backend = schemes.SCHEMES[name].backend
    assert backend is not None
    assert name in schemes.served_by(backend)
    authority = "container@account.dfs.core.windows.net" if schemes.about(name).has_container else "place"
    store = new_store_for(f"{name}://{'' if name == 'file' else authority}/table")
    assert type(store).schemes is not None
    assert name in type(store).schemes
    assert type(store).__module__.startswith(f"tablelog.logstore.{backend}.")


def test_what_is_no_container_is_user_information() -> None:
    assert shown("abfss://container@account/x") == "abfss://container@account/x"
    assert shown("s3a://key@bucket/x") == "s3a://bucket/x"
    assert shown("unheard://user@host/x") == "unheard://host/x"
    assert store_for("memory:///x") is store_for("memory:///x")
