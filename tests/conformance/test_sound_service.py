"""A correct store on a correct service passes everything too, what needs a proxy as well."""

import pytest

from tablelog.conformance import CHECKS, Check, Level, try_out
from tablelog.conformance.mutants.object_store import ObjectStore
from tablelog.conformance.mutants.services import target


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
