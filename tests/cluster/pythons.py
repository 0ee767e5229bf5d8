"""Pythons for executors, each with a part of the packages of this one: they are linked, so it takes no time."""

import site
import venv
from collections.abc import Collection
from pathlib import Path


def python_without(directory: Path, packages: Collection[str], *, tablelog: str | None = None) -> str:
    """The program of a Python in `directory` that has all packages of this one but `packages`.

    `tablelog`: the version of a package that takes the place of tablelog.
    """
    venv.create(directory, symlinks=True)
    own = next((directory / "lib").glob("python*/site-packages"))
    left_out = (*packages, *(("__editable__",) if "tablelog" in packages else ()))
    for entry in Path(site.getsitepackages()[0]).iterdir():
        if not entry.name.startswith(left_out) and not (own / entry.name).exists():
            (own / entry.name).symlink_to(entry)
    if tablelog is not None:
        (own / "tablelog").mkdir()
        (own / "tablelog" / "__init__.py").write_text(f"__version__ = {tablelog!r}\n")
    return str(directory / "bin" / "python")
