"""Memory and descriptors of a process, sampled, and whether they stayed flat."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

_PAGE = os.sysconf("SC_PAGE_SIZE")
_MIB = 1 << 20
_FEWEST = 12

MEMORY_PARTS, MEMORY_MIB = 0.15, 48
"""Memory may grow by the larger of these, from the second quarter of the soak (after warm-up) to the last."""
DESCRIPTORS = 16
"""So many more descriptors may be open."""


@dataclass(frozen=True)
class Sample:
    """`memory` in bytes; `descriptors` are open."""

    memory: int
    descriptors: int = 0


def sample(pid: int) -> Sample | None:
    """The process now; None: it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return Sample(pages * _PAGE, len(os.listdir(f"/proc/{pid}/fd")))
    except (OSError, IndexError):
        return None


@dataclass(frozen=True)
class Verdict:
    """Medians of the second and the last quarter: memory in MiB, descriptors."""

    memory: tuple[float, float]
    descriptors: tuple[float, float]
    problems: tuple[str, ...]


def verdict(what: str, samples: Sequence[Sample]) -> Verdict | None:
    """Whether they stayed flat; None: there are too few samples to say."""
    if len(samples) < _FEWEST:
        return None
    quarter = len(samples) // 4
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    memory = (median(one.memory for one in early) / _MIB, median(one.memory for one in late) / _MIB)
    descriptors = (float(median(one.descriptors for one in early)), float(median(one.descriptors for one in late)))
    found = []
    if memory[1] - memory[0] > max(MEMORY_PARTS * memory[0], MEMORY_MIB):
        found.append(f"the memory of {what} grew from {memory[0]:.0f} to {memory[1]:.0f} MiB")
    if descriptors[1] - descriptors[0] > DESCRIPTORS:
        found.append(f"the descriptors of {what} grew from {descriptors[0]:.0f} to {descriptors[1]:.0f}")
    return Verdict(memory, descriptors, tuple(found))
