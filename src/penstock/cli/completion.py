"""``penstock completion``: what lets a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

PROGRAM = "penstock"
# How the script asks the program what may follow.
VARIABLE = "_PENSTOCK_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, /, shell: str) -> None:
    """Print a script that lets your shell complete penstock's commands.

    \b
    Examples:
      eval "$(penstock completion bash)"                 in ~/.bashrc
      eval "$(penstock completion zsh)"                  in ~/.zshrc
      penstock completion fish > ~/.config/fish/completions/penstock.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these three"
    root = context.find_root().command
    click.echo(kind(root, {}, PROGRAM, VARIABLE).source())
