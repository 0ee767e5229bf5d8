"""Broken stores on a correct object service, and a correct store on broken object services."""

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
    """Sends a write again after a lost reply, and treats its own file as another's (SDKs with automatic retries)."""

    def attempt(self, path: str, data: bytes) -> Answer:
        answer = super().attempt(path, data)
        return super().attempt(path, data) if answer.verdict is Verdict.AMBIGUOUS else answer


class AsksAgainForCertain(ObjectStore):
    """Sends a write again after a lost reply, without the condition."""

    def attempt(self, path: str, data: bytes) -> Answer:
        answer = super().attempt(path, data)
        if answer.verdict is not Verdict.AMBIGUOUS:
            return answer
        return self.meaning(*self.send(path, data, {}))


class CallsALostReplyAnError(ObjectStore):
    """Reports that nothing was written when the connection is lost."""

    def attempt(self, path: str, data: bytes) -> Answer:
        try:
            return self.meaning(*self.send(path, data, {"If-None-Match": "*"}))
        except http.client.HTTPException as error:
            raise ConnectionError(f"writing {path} failed: {error}") from error


class TakesSilenceForSuccess(ObjectStore):
    """Reports success when the connection is lost."""

    def attempt(self, path: str, data: bytes) -> Answer:
        answer = super().attempt(path, data)
        return Answer(Verdict.APPLIED) if answer.verdict is Verdict.AMBIGUOUS else answer


class TakesAPageForSuccess(ObjectStore):
    """Treats every 200 as a success, also the page of a proxy that asks for a login."""

    def meaning(self, status: int, body: bytes) -> Answer:
        return Answer(Verdict.APPLIED) if status == 200 else super().meaning(status, body)


class TakesConflictForExists(ObjectStore):
    """Treats S3's 409, which means "try again", as an existing file (object_store)."""

    def meaning(self, status: int, body: bytes) -> Answer:
        return Answer(Verdict.EXISTS) if status == 409 else super().meaning(status, body)


class NeedsTheCondition(ObjectStore):
    """Treats a 412 as an existing file only if it names the condition (s3fs against Ceph)."""

    def meaning(self, status: int, body: bytes) -> Answer:
        if status == 412 and b"<Condition>" not in body:
            raise OSError(22, "Invalid argument")
        return super().meaning(status, body)


class DropsTheConditionOnTheWay(ObjectStore):
    """Follows a redirect without the header of the condition."""

    def redirected(self, headers: dict[str, str] | None) -> dict[str, str] | None:
        return None


class LooksThenPuts(ObjectStore):
    """Checks whether the object exists, then writes it without a condition (stores for S3 before 2024)."""

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
    """A broken client of a correct service."""
    what = (kind.__doc__ or "").partition("\n")[0]
    return Mutant(kind.__name__, what, caught_by, lambda _directory: target(kind, SOUND, what))


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
    on_a_service(TakesAPageForSuccess, "what_was_never_sent_is_never_won"),
    on_a_service(TakesConflictForExists, "what_was_turned_away_is_never_a_loss"),
    on_a_service(NeedsTheCondition, "exists_is_seen_in_every_form"),
    on_a_service(DropsTheConditionOnTheWay, "exists_is_seen_in_every_form"),
    on_a_service(LooksThenPuts, "one_winner_when_all_stand_before_the_act"),
    _bucket(
        "ignores-the-condition",
        "Ignores the condition of a write (rclone serve s3, s3rver)",
        "second_writer_loses",
        "one_winner_among_processes",
        "processes_make_one_contiguous_log",
    ),
    _bucket(
        "ignores-it-on-multipart", "Ignores the condition of multipart uploads (Ceph 16)", "a_large_write_loses_too"
    ),
    _bucket("looks-then-acts", "Checks and writes in two steps (moto)", "one_winner_among_threads"),
    _bucket(
        "takes-what-came", "Writes the part of a request body that arrived", "a_killed_writer_leaves_all_or_nothing"
    ),
    _bucket("answers-first", "Replies before the write is applied", "absent_is_not_found"),
)
