"""Calls over Py4J: what a program waits for."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.java_gateway import GatewayClient


@contextmanager
def calls_to_the_jvm() -> Iterator[list[str]]:
    """The commands that this thread sends to the JVM."""
    ours, send, commands = threading.current_thread(), GatewayClient.send_command, []

    def noted(self: GatewayClient, command: str, *args: Any, **kwargs: Any) -> Any:
        if threading.current_thread() is ours and not command.startswith("m\n"):  # objects that Python has released
            commands.append(command)
        return send(self, command, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GatewayClient, "send_command", noted)
        yield commands
