"""memd-ctl help: shows the pages of the documentation, which are installed with memd."""

import re
from importlib import resources

import msgspec

from memd.ctl.arguments import COMMANDS
from memd.ctl.failures import NOT_FOUND, Failed
from memd.ctl.invocation import Invocation
from memd.ctl.output.terminal import Outcome, Screen

_WIDEST = 110  # columns: longer lines are hard to read
_LINK = re.compile(r"\[([^\]]+)\]\(([\w-]+)\.md(?:#[\w-]*)?\)")


class HelpPage(msgspec.Struct, frozen=True):
    """One page, in Markdown."""

    topic: str  # the file's name without .md, which the user types
    title: str  # its first heading
    text: str  # links to other pages are replaced by the command that shows them


def run_help(invocation: Invocation) -> Outcome:
    """List the pages, or show the one that is named."""
    pages = read_pages()
    wanted = invocation.options.topic
    if wanted is None:
        topics = [{"topic": page.topic, "title": page.title} for page in pages.values()]
        return Outcome({"topics": topics}, _listing(pages, invocation.screen))
    page = pages.get(_name(wanted))
    if page is None:
        raise _unknown(wanted, pages)
    return Outcome(page, _rendered(page.text, invocation.screen))


def read_pages() -> dict[str, HelpPage]:
    """Return all pages by topic, in alphabetical order."""
    files = (resources.files("memd") / "docs").iterdir()
    texts = {
        file.name.removesuffix(".md"): file.read_text("utf-8") for file in files if file.name.endswith(".md")
    }
    return {
        topic: HelpPage(
            topic, texts[topic].partition("\n")[0].removeprefix("# "), _LINK.sub(_command, texts[topic])
        )
        for topic in sorted(texts)
    }


def _name(typed: str) -> str:
    return typed.strip().casefold().removesuffix(".md")


def _command(link: re.Match[str]) -> str:
    words, topic = link.groups()
    command = f"`memd-ctl help {topic}`"
    return command if words == topic else f"{words} ({command})"


def _listing(pages: dict[str, HelpPage], screen: Screen) -> str:
    longest = max(map(len, pages))
    lines = [f"  {screen.paint(f'{page.topic:{longest}}', 'cyan')}  {page.title}" for page in pages.values()]
    return "\n".join(
        [
            "`memd-ctl help TOPIC` shows one of these pages:",
            "",
            *lines,
            "",
            "`memd-ctl COMMAND --help` lists the options of a command.",
        ]
    )


def _rendered(text: str, screen: Screen) -> str:
    """Format Markdown for a terminal; elsewhere return it unchanged."""
    if not screen.draws:
        return text
    from io import StringIO  # noqa: PLC0415 - rich takes longer to import than a search takes

    from rich.console import Console  # noqa: PLC0415 - likewise
    from rich.markdown import Markdown  # noqa: PLC0415 - likewise

    out = StringIO()
    console = Console(
        file=out, force_terminal=True, width=min(screen.columns or 80, _WIDEST), no_color=not screen.colors
    )
    console.print(Markdown(text, code_theme="ansi_dark", hyperlinks=False))
    return out.getvalue()


def _unknown(wanted: str, pages: dict[str, HelpPage]) -> Failed:
    import difflib  # noqa: PLC0415 - needed for this message only

    name = _name(wanted)
    # A word of a title is a way to ask for its page: secrets are in redaction.
    words = {
        word: page.topic for page in pages.values() for word in re.findall(r"\w{4,}", page.title.casefold())
    }
    words |= {topic: topic for topic in pages}
    found = [name] if name in words else difflib.get_close_matches(name, words, n=3, cutoff=0.6)
    near = dict.fromkeys(words[word] for word in found)
    hints = [f"Did you mean {' or '.join(f'`memd-ctl help {topic}`' for topic in near)}?"] if near else []
    if name in COMMANDS:
        hints.append(f"`memd-ctl {name} --help` lists the options of that command.")
    hints.append("`memd-ctl help` lists all pages.")
    return Failed("not_found", f"There is no help page {wanted!r}.", " ".join(hints), exit_code=NOT_FOUND)
