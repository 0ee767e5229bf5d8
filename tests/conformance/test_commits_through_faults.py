"""A whole table commit whose reply is lost in any way is made once, and its writer says won or unknown."""

import pytest

from support.lost_replies import FORMS, commit_through, form
from tablelog.conformance.mutants.object_store import ObjectStore
from tablelog.conformance.mutants.services import AsksAgainForCertain, CallsALostReplyAnError, target


@pytest.mark.parametrize("name", FORMS)
def test_a_commit_is_made_once(name: str) -> None:
    sound = target(ObjectStore)
    told = commit_through(form(name), sound.endpoint or "", ObjectStore, sound.factory(), sound.root)
    if name in {"dropped", "500", "503", "never sent", "late", "all dropped", "all 500", "all late"}:
        assert list(told.values()) == [1, 2, 3, 4]
    else:  # nothing ever arrives: nobody can know
        assert set(told.values()) == {None}


def test_the_same_commits_find_a_store_that_denies_what_it_did() -> None:
    """The control: with the answer of a broken store a commit that was made is reported as failed."""
    broken = target(CallsALostReplyAnError)
    with pytest.raises(ConnectionError):
        commit_through(form("dropped"), broken.endpoint or "", CallsALostReplyAnError, broken.factory(), broken.root)


def test_a_commit_survives_a_store_that_sends_it_twice() -> None:
    """What is sent again is the same commit at the same version, so even this doesn't make it twice."""
    broken = target(AsksAgainForCertain)
    told = commit_through(form("dropped"), broken.endpoint or "", AsksAgainForCertain, broken.factory(), broken.root)
    assert list(told.values()) == [1, 2, 3, 4]
