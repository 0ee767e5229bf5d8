"""`python -m servers`: install the servers, list them, or run one by hand until Ctrl-C."""

import argparse
import shlex
import signal
import sys

from . import SERVERS, StorageServer, install


def main() -> int:
    """Do what the command line says; 1 if something can't be installed."""
    parser = argparse.ArgumentParser(prog="python -m servers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    installing = commands.add_parser("install", help="install all, or those that are named")
    installing.add_argument("names", nargs="*", choices=[[], *SERVERS], metavar="NAME")
    commands.add_parser("list", help="their names, and what this machine lacks for them")
    running = commands.add_parser("run", help="start one with empty data, say how it is reached, wait for Ctrl-C")
    running.add_argument("name", choices=SERVERS)
    arguments = parser.parse_args()
    match arguments.command:
        case "install":
            return _install(arguments.names or list(SERVERS))
        case "list":
            print("\n".join(SERVERS))
            return 0
        case _:
            return _run(arguments.name)


def _install(names: list[str]) -> int:
    failed = 0
    for name in names:
        try:
            print(f"{name}: {SERVERS[name].install()}", flush=True)
        except (install.CannotInstallError, install.InstallationError) as error:
            failed = 1
            print(f"{name}: {error}", file=sys.stderr, flush=True)
    return failed


def _run(name: str) -> int:
    server = SERVERS[name].start()
    try:
        print(f"{name} answers at {server.endpoint}\n\nHadoop keys:")
        for key, value in server.conf.items():
            print(f"  {key}={value}")
        print(
            f"\nfsspec storage options:\n  {server.storage_options}\n\nenvironment, for SDKs and for other processes:"
        )
        for key, value in {**server.environment, **server.published()}.items():
            print(f"  export {key}={shlex.quote(value)}")
        if isinstance(server, StorageServer):
            print(f"\nan empty place: {server.url()}")
        print("\nCtrl-C stops it and removes its data.", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
