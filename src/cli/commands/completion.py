"""`tablelog completion`: the script by which a shell completes the command's words."""

import click
from click.shell_completion import get_completion_class

from ..parameters import Command


@click.command(
    cls=Command,
    examples=(
        "tablelog completion bash >> ~/.bashrc",
        "tablelog completion zsh >> ~/.zshrc",
        "tablelog completion fish > ~/.config/fish/completions/tablelog.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that makes SHELL complete commands and options."""
    from ..group import root

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(root, {}, "tablelog", "_TABLELOG_COMPLETE").source())
