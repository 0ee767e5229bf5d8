"""Broken stores on an object service, and stores that are right on a service that is wrong."""

import http.client
import secrets
from collections.abc import Callable
from functools import partial

from tablelog.logstore import LogStore
from tablelog.logstore.common.conditional_put import Answer, Verdict

from ..model import Factory, Target
from .mutant import Mutant
from .object_server import BEHAVIOURS, SOUND, shared
from .object_store import ObjectStore


class AsksAgain(ObjectStore):
    """Sends a write whose reply was lost again, and takes "exists" for another's (every SDK with its retries on)."""

    def attempt(self, path: str, data: bytes) -> Answer:
        answer = super().attempt(path, data)
        return super().attempt(path, data) if answer.verdict is Verdict.AMBIGUOUS else answer


class AsksAgainForCertain(ObjectStore):
    """Sends a write whose reply was lost again, with no condition."""

    def attempt(self, path: str, data: bytes) -> Answer:
        answer = super().attempt(path, data)
        if answer.verdict is not Verdict.AMBIGUOUS:
            return answer
        return self.meaning(*self.send(path, data, {}))


class CallsALostReplyAnError(ObjectStore):
    """Says that nothing was written when the connection was cut."""

    def attempt(self, path: str, data: bytes) -> Answer:
        try:
            return self.meaning(*self.send(path, data, {"If-None-Match": "*"}))
        except http.client.HTTPException as error:
            raise ConnectionError(f"writing {path} failed: {error}") from error


class TakesSilenceForSuccess(ObjectStore):
    """Takes a connection that ended for the end of a write."""

    def attempt(self, path: str, data: bytes) -> Answer:
        answer = super().attempt(path, data)
        return Answer(Verdict.APPLIED) if answer.verdict is Verdict.AMBIGUOUS else answer


class TakesConflictForExists(ObjectStore):
    """Takes S3's 409, which means "try again", for a name that is taken (object_store)."""

    def meaning(self, status: int, body: bytes) -> Answer:
        return Answer(Verdict.EXISTS) if status == 409 else super().meaning(status, body)


class NeedsTheCondition(ObjectStore):
    """Takes a 412 for "exists" only where it names the condition (s3fs against Ceph)."""

    def meaning(self, status: int, body: bytes) -> Answer:
        if status == 412 and b"<Condition>" not in body:
            raise OSError(22, "Invalid argument")
        return super().meaning(status, body)


class DropsTheConditionOnTheWay(ObjectStore):
    """Follows a redirect without the header."""

    def redirected(self, headers: dict[str, str] | None) -> dict[str, str] | None:
        return None


class LooksThenPuts(ObjectStore):
    """Asks whether the object exists, then puts it with no condition (every store before 2024)."""

    def attempt(self, path: str, data: bytes) -> Answer:
        if self.ask("HEAD", path)[0] == 200:
            return Answer(Verdict.EXISTS)
        return self.meaning(*self.send(path, data, {}))


def target(kind: Callable[[str], LogStore], bucket: str = SOUND, what: str = "") -> Target:
    """A store on the shared service, in one of its buckets."""
    endpoint = shared().endpoint
    return Target(
        partial(kind, endpoint), f"s3://{bucket}/{secrets.token_hex(6)}", what, endpoint, partial(_through, kind)
    )


def _through(kind: Callable[[str], LogStore], address: str) -> Factory:
    return partial(kind, address)


def on_a_service(kind: type[ObjectStore], *caught_by: str) -> Mutant:
    """A broken client of a service that is right."""
    said = (kind.__doc__ or "").partition("\n")[0]
    return Mutant(kind.__name__, said, caught_by, lambda _directory: target(kind, SOUND, said))


def _bucket(name: str, what: str, *caught_by: str) -> Mutant:
    assert name in BEHAVIOURS
    return Mutant(
        f"ServiceThat{name.title().replace('-', '')}", what, caught_by, lambda _: target(ObjectStore, name, what)
    )


MUTANTS: tuple[Mutant, ...] = (
    on_a_service(AsksAgain, "a_lost_reply_is_never_a_loss"),
    on_a_service(AsksAgainForCertain, "a_lost_reply_is_never_a_loss"),
    on_a_service(CallsALostReplyAnError, "a_lost_reply_is_never_a_loss", "a_write_that_comes_late_is_never_denied"),
    on_a_service(TakesSilenceForSuccess, "what_was_never_sent_is_never_won"),
    on_a_service(TakesConflictForExists, "what_was_turned_away_is_never_a_loss"),
    on_a_service(NeedsTheCondition, "exists_is_seen_in_every_form"),
    on_a_service(DropsTheConditionOnTheWay, "exists_is_seen_in_every_form"),
    on_a_service(LooksThenPuts, "one_winner_when_all_stand_before_the_act"),
    _bucket(
        "ignores-the-condition",
        "Heeds no condition (rclone serve s3, s3rver)",
        "second_writer_loses",
        "one_winner_among_processes",
        "processes_make_one_contiguous_log",
    ),
    _bucket("ignores-it-on-multipart", "Heeds no condition on multipart (Ceph 16)", "a_large_write_loses_too"),
    _bucket("looks-then-acts", "Looks and acts in two steps (moto)", "one_winner_among_threads"),
    _bucket("takes-what-came", "Keeps a part of a body that was cut", "a_killed_writer_leaves_all_or_nothing"),
    _bucket("answers-first", "Answers before the write is done", "absent_is_not_found"),
)
