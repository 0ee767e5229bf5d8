"""A correct store on a correct service passes everything too, what needs a proxy as well."""

import threading
from itertools import count

import pytest

from tablelog.conformance import CHECKS, Check, Level, try_out
from tablelog.conformance.mutants.object_store import ObjectStore
from tablelog.conformance.mutants.services import target
from tablelog.logstore.base import Exclusion

_LOCK = threading.Lock()
_NUMBERS = count()


class Locking(ObjectStore):
    """Keeps a lock of the process while it waits for the service, as a store for one driver does."""

    exclusion: Exclusion = "process"

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        with _LOCK:
            super().write(path, data, overwrite=overwrite)


class Varying(ObjectStore):
    """Now and then takes a request more, as a client does that asks until the service is ready."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        if next(_NUMBERS) % 2:
            self.delete(f"{path}.none")
        super().write(path, data, overwrite=overwrite)


@pytest.mark.parametrize("kind", [Locking, Varying])
@pytest.mark.parametrize("name", ["a_lost_reply_is_never_a_loss", "a_write_that_comes_late_is_never_denied"])
def test_no_check_waits_for_what_never_comes(kind: type[ObjectStore], name: str) -> None:
    one = target(kind)
    [check] = [check for check in CHECKS if check.name == name]
    found = try_out(
        check, one.factory, f"{one.root}/{kind.__name__}{name}", seconds=8, endpoint=one.endpoint, through=one.through
    )
    assert found.time_left > 0
    assert found.evidence["answers"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "check", [check for check in CHECKS if check.level is Level.QUICK], ids=lambda check: check.name
)
def test_a_correct_store_on_a_service(check: Check) -> None:
    sound = target(ObjectStore)
    try_out(
        check,
        sound.factory,
        f"{sound.root}/{check.name}",
        seconds=15,
        endpoint=sound.endpoint,
        through=sound.through,
    )
