"""Memory of one engine over many batches of a stream: `python -m benchmarks.stream_memory tablelog|delta [BATCHES]`.

Run it in the environment that TABLELOG_PEER_PYTHON names for `make bench`. It prints a Markdown table.
"""

import argparse
import tempfile

from benchmarks.stream_work import StreamWork


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=("tablelog", "delta"))
    parser.add_argument("batches", type=int, nargs="?", default=10_000)
    parser.add_argument("--samples", type=int, default=20)
    arguments = parser.parse_args()
    work = StreamWork(arguments.engine)
    print("| batches | Python, MiB | Java's heap in use, MiB | Java, MiB |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="tablelog-bench-") as directory:
        samples = work.memory(f"{directory}/source", f"{directory}/query", arguments.batches, arguments.samples)
        for sample in samples:
            print(f"| {' | '.join(f'{value:,.0f}' for value in sample)} |")


if __name__ == "__main__":
    main()
