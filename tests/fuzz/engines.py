"""The engines that make cases: Hypothesis, and atheris, which keeps inputs that reach new code.

`python -m fuzz.engines ENGINE TARGET LAST SEED DIRECTORY` runs cases until LAST are done; `python -m fuzz` starts it.
"""

import faulthandler
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

from .choices import Choices
from .mutation import LONGEST, changed, mutant
from .recorder import Recorder, limit_memory
from .target import Target, is_valid

_EXAMPLES = 2_500
"""Hypothesis remembers all examples of one test: it gets a new test after this many."""
_CASES, _DRAWN = 8, 48
"""The cases of an example of Hypothesis, and the bytes that it draws for each."""


def inputs(target: Target) -> Any:
    """A strategy of Hypothesis: lists of changed seeds, and now and then of any bytes.

    An example has several cases, because Hypothesis needs longer for an example than most parsers for a case.
    """
    from hypothesis import strategies as st

    size = _CASES * _DRAWN
    drawn = st.binary(min_size=size, max_size=size)
    return drawn.map(lambda data: [_input(target, data[at : at + _DRAWN]) for at in range(0, size, _DRAWN)])


def _input(target: Target, drawn: bytes) -> bytes:
    anything, choices = drawn[1:], Choices.of_bytes(drawn)
    return anything if choices.below(32) == 1 else mutant(choices, target)


def run_hypothesis(target: Target, recorder: Recorder, last: int, seed: int) -> None:
    import hypothesis

    while recorder.cases < last:
        settings = hypothesis.settings(
            max_examples=min(_EXAMPLES, -(-(last - recorder.cases) // _CASES)),
            database=None,
            deadline=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        before = recorder.cases
        hypothesis.seed(seed + before)(settings(hypothesis.given(inputs(target))(recorder.run_all)))()
        if recorder.cases == before:
            break


def run_atheris(name: str, directory: Path, last: int, seed: int) -> None:
    import atheris

    # Thrift is read byte by byte in Python: its branches count where nothing else is parsed.
    left_out = [] if name == "parquet" else ["tablelog.core.log.thrift"]
    with atheris.instrument_imports(include=["tablelog"], exclude=left_out):
        from .targets import TARGETS

        target = TARGETS[name]
        for data in target.seeds:  # also imports what is imported on first use
            is_valid(target, data)
    recorder = Recorder(target, directory)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        choices = Choices.seeded(seed)
        kind = choices.below(8)
        if kind == 0:
            return mutant(choices, target)[:most]
        if kind <= 2:
            return bytes(atheris.Mutate(data, len(data) + 64))[:most]
        return changed(choices, bytes(data), target)[:most]

    corpus = directory / "corpus"
    corpus.mkdir(exist_ok=True)
    for number, data in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(data)
    options = [
        f"-runs={last - recorder.cases}", f"-seed={seed}", f"-max_len={LONGEST}", "-rss_limit_mb=0",
        "-timeout=1000000", f"-artifact_prefix={directory}/",
        "-print_final_stats=1", "-reload=0", "-len_control=0", str(corpus),
    ]  # fmt: skip
    limit_memory()
    atheris.Setup([sys.argv[0], *options], recorder.run, custom_mutator=mutate)
    atheris.Fuzz()


def main(engine: str, name: str, last: int, seed: int, directory: Path) -> None:
    faulthandler.enable()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    if engine == "atheris":
        run_atheris(name, directory, last, seed)
        return
    from .targets import TARGETS

    target = TARGETS[name]
    for data in target.seeds:
        is_valid(target, data)
    limit_memory()
    run_hypothesis(target, Recorder(target, directory), last, seed)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
