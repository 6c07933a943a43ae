"""memd-ctl completion: completion for bash, zsh and fish, and a man page, made from the argument parser."""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from memd import VERSION
from memd.ctl.arguments import make_parser
from memd.ctl.atomic_write import write_text
from memd.ctl.failures import BAD_CONFIG, ERROR, Failed
from memd.ctl.invocation import Invocation
from memd.ctl.output.humanize import shown, visible
from memd.ctl.output.terminal import Outcome

_FILES = ("FILE", "PATH", "DIR")  # what arguments that are files are called
# In each file: what has it not is somebody else's, and is left alone.
_MARK = "Written by memd-ctl completion install; memd-ctl completion uninstall deletes it."


class TerminalFiles(msgspec.Struct, frozen=True):
    """The written or deleted files, for --json."""

    files: list[str]


def run_completion(invocation: Invocation) -> Outcome:
    """Run the action of the command line.

    Raises:
        Failed: a package is missing, or a file was not written by memd.
    """
    files = _places(invocation.environ, invocation.places.home)
    if invocation.options.action == "uninstall":
        return _uninstall(files, invocation.places.home)
    texts = _texts()
    if invocation.options.print:
        return Outcome(
            {str(files[name]): text for name, text in texts.items()},
            "\n".join(f"==> {files[name]} <==\n{_visible_lines(text)}" for name, text in texts.items()),
        )
    foreign = [str(file) for file in files.values() if file.exists() and not _is_ours(file)]
    if foreign:
        raise Failed(
            "failed",
            f"memd-ctl did not write {', '.join(foreign)}; nothing was changed.",
            "Move it away, and try again.",
            exit_code=ERROR,
        )
    for name, text in texts.items():
        write_text(files[name], text)
    told = {name: visible(shown(file, invocation.places.home)) for name, file in files.items()}
    return Outcome(
        TerminalFiles([str(file) for file in files.values()]),
        f"bash  {told['bash']}\n      In force in new shells where the package bash-completion is installed; else add to ~/.bashrc:"
        f" source {told['bash']}\n"
        f"zsh   {told['zsh']}\n      Add to ~/.zshrc, before compinit: fpath=({visible(shown(files['zsh'].parent, invocation.places.home))} $fpath)\n"
        f"fish  {told['fish']}\n      In force in new shells.\n"
        f"man   {told['man']}\n      man memd-ctl, where ~/.local/bin is on the PATH; else: man {told['man']}",
    )


def _visible_lines(text: str) -> str:
    """Make control characters in each line visible."""
    return "\n".join(map(visible, text.splitlines()))


def _uninstall(files: Mapping[str, Path], home: Path) -> Outcome:
    ours = [file for file in files.values() if file.exists() and _is_ours(file)]
    for file in ours:
        file.unlink()
    deleted = ", ".join(visible(shown(file, home)) for file in ours)
    left = tuple(
        f"{visible(shown(file, home))} was left alone: memd-ctl did not write it."
        for file in files.values()
        if file.exists()
    )
    return Outcome(
        TerminalFiles([str(file) for file in ours]),
        f"Deleted {deleted}." if deleted else "There is nothing to delete.",
        left,
    )


def _places(environ: Mapping[str, str], home: Path) -> dict[str, Path]:
    """Return the directories where shells and man look for files of a user."""
    given = Path(environ.get("XDG_DATA_HOME") or "")
    data = given if given.is_absolute() else home / ".local" / "share"
    return {
        "bash": data / "bash-completion/completions/memd-ctl",
        "zsh": data / "zsh/site-functions/_memd-ctl",
        "fish": data / "fish/vendor_completions.d/memd-ctl.fish",
        "man": data / "man/man1/memd-ctl.1",
    }


def _is_ours(file: Path) -> bool:
    return _MARK in file.read_text("utf-8", "replace")


def _texts() -> dict[str, str]:
    """Return the text of each file, by shell or man.

    Raises:
        Failed: the package that generates them is not installed.
    """
    try:
        import shtab  # noqa: PLC0415 - of an extra
        from argparse_manpage.manpage import Manpage  # noqa: PLC0415 - likewise
    except ImportError as missing:
        raise Failed(
            "failed",
            f"Completion and the man page are made with {missing.name}, which is not installed.",
            "pip install 'memd-daemon[terminal]', from a clone: pip install './client' '.[terminal]'",
            exit_code=BAD_CONFIG,
        ) from missing
    texts = {
        shell: f"{shtab.complete(_completed(), shell)}\n# {_MARK}\n" for shell in ("bash", "zsh", "fish")
    }
    about = {
        "project_name": "memd",
        "version": VERSION,
        "manual_title": "memd",
        "description": "memory of AI agents",
    }
    page = Manpage(make_parser(is_page=True), about)
    return {**texts, "man": f'.\\" {_MARK}\n{page}\n'}


def _completed() -> argparse.ArgumentParser:
    """Return the parser with file and directory arguments marked as shtab expects."""
    import shtab  # noqa: PLC0415 - of an extra

    parser = make_parser()
    for action in _actions(parser):
        if action.metavar in _FILES:
            vars(action)["complete"] = shtab.DIRECTORY if action.metavar == "DIR" else shtab.FILE
    return parser


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of its subparsers."""
    for action in vars(parser)["_actions"]:
        yield action
        if isinstance(action.choices, dict):
            for within in action.choices.values():
                yield from _actions(within)
