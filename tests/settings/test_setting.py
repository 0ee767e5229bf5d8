"""What settings parse, what they refuse, and which keys are declared."""

from typing import Any, get_args

import pytest

from tablelog.core import DeltaLog
from tablelog.core.protocol.external_paths import Policy
from tablelog.core.protocol.type_widening import Automatic
from tablelog.errors import InvalidArgumentError, LogStoreConfigurationError
from tablelog.settings import declarations, spark_own, unsupported
from tablelog.settings.setting import Setting

MIB = 1 << 20
EVERY = [*declarations.SETTINGS.values(), *spark_own.SETTINGS.values()]


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        (declarations.AUTO_MERGE, " TRUE ", True),
        (declarations.AUTO_MERGE, "false", False),
        (declarations.OPTIMIZE_WRITE, "true", True),
        (declarations.MAX_COMMIT_ATTEMPTS, " 0 ", 0),
        (declarations.CHECKPOINT_PART_SIZE, "7", 7),
        (declarations.OPTIMIZE_MAX_DELETED_RATIO, "0.5", 0.5),
        (declarations.OPTIMIZE_MAX_FILE_SIZE, "1048576", MIB),
        (declarations.OPTIMIZE_MAX_FILE_SIZE, "2 MB", 2 * MIB),
        (declarations.OPTIMIZE_WRITE_BIN_SIZE, "2", 2 * MIB),
        (declarations.OPTIMIZE_WRITE_BIN_SIZE, "2048k", 2 * MIB),
        (declarations.AUTO_COMPACT, "Auto", "auto"),
        (declarations.EXTERNAL_PATHS, "samestore", "sameStore"),
        (declarations.READ_ROUTE, "", "auto"),
        (declarations.TXN_APP_ID, " app ", " app "),
        (spark_own.MAX_RECORDS_PER_FILE, "-1", -1),
    ],
)
def test_a_value(setting: Setting[Any], text: str, value: object) -> None:
    assert setting.of({setting.key: text}) == value
    assert setting.of({}) == setting.default


@pytest.mark.parametrize(
    ("setting", "text", "allowed"),
    [
        (declarations.AUTO_MERGE, "yes", "true or false"),
        (declarations.WRITE_CHECKSUM, "", "true or false"),
        (declarations.MAX_COMMIT_ATTEMPTS, "-1", "whole number, 0 or larger"),
        (declarations.MAX_COMMIT_ATTEMPTS, "1.5", "whole number, 0 or larger"),
        (declarations.MAX_COMMIT_ATTEMPTS, "\u0661", "whole number, 0 or larger"),
        (declarations.CHECKPOINT_PART_SIZE, "0", "whole number, 1 or larger"),
        (declarations.OPTIMIZE_MAX_DELETED_RATIO, "2", "between 0 and 1"),
        (declarations.OPTIMIZE_MAX_DELETED_RATIO, "nan", "between 0 and 1"),
        (declarations.OPTIMIZE_MAX_FILE_SIZE, "2 elephants", "number of bytes"),
        (declarations.OPTIMIZE_WRITE_BIN_SIZE, "-2", "number of MiB"),
        (declarations.AUTO_COMPACT, "maybe", "true, auto or false"),
        (declarations.READ_ROUTE, "fast", "auto, native, manifest or arrow"),
    ],
)
def test_a_wrong_value_names_the_key_the_value_and_what_is_allowed(
    setting: Setting[Any], text: str, allowed: str
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        setting.of({setting.key: text})
    message = str(refused.value)
    assert message.startswith(f"{setting.key} is {text!r}: ")
    assert allowed in message


def test_settings_of_stores_have_an_error_of_their_own() -> None:
    for setting in (declarations.SECOND_DRIVER, declarations.DYNAMODB_TTL):
        with pytest.raises(LogStoreConfigurationError, match=setting.key):
            setting.parsed("perhaps")


def test_a_handle_refuses_what_it_would_read_after_a_commit() -> None:
    """A commit stands by then: a wrong value could only be logged, and the checkpoint would never be written."""
    for setting in (declarations.WRITE_CHECKSUM, declarations.CHECKSUM_MAX_FILES, declarations.COMPACTED_LOG_WRITES):
        with pytest.raises(InvalidArgumentError, match=setting.key):
            DeltaLog.for_path("memory://bucket/table", conf={setting.key: "perhaps"})


def test_choices_are_the_types_of_those_who_use_them() -> None:
    for setting, names in (
        (declarations.EXTERNAL_PATHS, get_args(Policy)),
        (declarations.AUTOMATIC_WIDENING, get_args(Automatic)),
    ):
        assert [setting.parsed(name.upper()) for name in names] == list(names)
        assert setting.default in names


def test_each_key_is_declared_once_with_a_line_of_help() -> None:
    declared = [
        one for module in (declarations, spark_own) for one in vars(module).values() if isinstance(one, Setting)
    ]
    assert len(declared) == len(EVERY) == len({one.key for one in EVERY})
    for one in EVERY:
        assert one.help.strip(".")
        assert "\n" not in one.help + one.shown_default + one.values.allowed
        assert "|" not in one.help + one.shown_default + one.values.allowed
    assert not unsupported.UNSUPPORTED.keys() & declarations.SETTINGS.keys()


def test_which_keys_have_no_effect() -> None:
    known, unknown = declarations.FORMAT_CHECK.key, f"{declarations.DELTA}formatCheck.enabeld"
    own = f"{declarations.TABLELOG}read.rout"
    set_keys = [known, f"{declarations.PROPERTY_DEFAULTS.prefix}appendOnly", "spark.sql.ansi.enabled", unknown, own]
    lock = f"{declarations.DELTA}commitLock.enabled"
    assert list(unsupported.without_effect([*set_keys, lock])) == [
        (unknown, ""),
        (own, ""),
        (lock, unsupported.UNSUPPORTED[lock].why),
    ]
