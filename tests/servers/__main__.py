"""Install the servers that tests run against, or run one by hand until Ctrl-C."""

import argparse
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from . import SERVERS, StorageServer, install
from .spark_jars import spark_jars

_INSTALLERS: dict[str, Callable[[], Path | list[Path]]] = {
    **{name: server.install for name, server in SERVERS.items()},
    "spark_jars": spark_jars,
}

_BY_DEFAULT = [name for name in _INSTALLERS if name not in SERVERS or not SERVERS[name].apart]
_OPTIONAL = {name for name, server in SERVERS.items() if server.optional}


def main() -> int:
    """Do what the command line says; 1 if an installation failed, or one that was asked for isn't possible here."""
    parser = argparse.ArgumentParser(prog="python -m servers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    installing = commands.add_parser("install", help="install those that are named, or all that aren't apart")
    installing.add_argument("names", nargs="*", metavar="NAME", help=", ".join(_INSTALLERS))
    commands.add_parser("list", help="what each one is")
    running = commands.add_parser("run", help="start one with no data in it, say how to reach it, wait for Ctrl-C")
    running.add_argument("name", choices=SERVERS)
    arguments = parser.parse_args()
    match arguments.command:
        case "install":
            unknown = set(arguments.names) - set(_INSTALLERS)
            if unknown:
                parser.error(f"nothing here is named {', '.join(sorted(unknown))}; there are {', '.join(_INSTALLERS)}")
            return _install(arguments.names or _BY_DEFAULT, required=bool(arguments.names))
        case "list":
            for name, server in SERVERS.items():
                print(f"{name:12} {sys.modules[server.__module__].__doc__}")
            return 0
        case _:
            return _run(arguments.name)


def _install(names: list[str], *, required: bool) -> int:
    failed = False
    for name in names:
        try:
            where = _INSTALLERS[name]()
            print(f"{name}: {where if isinstance(where, Path) else ','.join(map(str, where))}", flush=True)
        except install.CannotInstallError as error:
            failed |= required or (install.all_required() and name not in _OPTIONAL)
            print(f"{name}: {error}", file=sys.stderr, flush=True)
        except install.InstallationError as error:
            failed = True
            print(f"{name}: {error}", file=sys.stderr, flush=True)
    return failed


def _run(name: str) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    server = SERVERS[name].start()
    try:
        print(f"{name} answers at {server.endpoint}\n\nHadoop keys:")
        for key, value in server.conf.items():
            print(f"  {key}={value}")
        print(f"\nfsspec storage options:\n  {server.storage_options}")
        print("\nenvironment, for SDKs and for other processes:")
        for key, value in {**server.environment, **server.published()}.items():
            print(f"  export {key}={shlex.quote(value)}")
        if isinstance(server, StorageServer):
            print(f"\nan empty place: {server.url()}")
        print("\nCtrl-C stops it and removes its data.", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
