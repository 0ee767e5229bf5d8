"""No secret is ever shown: not in the command to replay, nor in anything that came out of a check."""

import pytest

from tablelog.conformance.secrecy import Scrubber, replay_command, secrets_among, shown_setting


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("endpoint", "http://127.0.0.1:9000", "endpoint=http://127.0.0.1:9000"),
        ("endpoint", "http://user:hidden@host:9000", "endpoint=http://host:9000"),
        ("fs.s3a.endpoint.region", "eu-west-1", "fs.s3a.endpoint.region=eu-west-1"),
        ("anon", True, "anon=true"),
        ("secret", "hidden", "secret=…"),
        ("fs.s3a.secret.key", "hidden", "fs.s3a.secret.key=…"),
        (
            "fs.azure.account.key.acc.blob.core.windows.net",
            "hidden",
            "fs.azure.account.key.acc.blob.core.windows.net=…",
        ),
        ("connection_string", "AccountKey=hidden", "connection_string=…"),
        ("a_name_nobody_thought_of", "hidden", "a_name_nobody_thought_of=…"),
        ("client_kwargs", {"aws_secret_access_key": "hidden"}, "client_kwargs=…"),
    ],
)
def test_only_harmless_settings_are_shown(name: str, value: object, shown: str) -> None:
    assert shown_setting(name, value) == shown


def test_secrets_are_found_in_nested_settings_and_short_or_plain_words_are_none() -> None:
    settings = {
        "secret": "abcdefgh",
        "client_kwargs": {"token": "tok-12345", "region_name": "eu-west-1"},
        "list": ["in-a-list", 7],
        "anon": "false",
        "flag": True,
        "short": "abc",
    }
    assert secrets_among(settings) == {"abcdefgh", "tok-12345", "in-a-list"}


def test_secrets_are_taken_out_of_whatever_holds_them() -> None:
    scrub = Scrubber({"hidden", "hidden-and-longer"})
    assert scrub("with hidden-and-longer and hidden.") == "with … and …."
    assert scrub({"hidden": ["a hidden", 1, None]}) == {"…": ("a …", 1, None)}
    assert Scrubber(())("s3a://key:secret@bucket/t") == "s3a://…@bucket/t"


def test_the_command_to_replay_is_one_for_a_shell() -> None:
    words = ["tablelog", "--root", "s3://b/a b", "--option", "secret=…"]
    assert replay_command(words) == "tablelog --root 's3://b/a b' --option secret=…"
