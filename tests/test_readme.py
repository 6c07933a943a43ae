"""What the README and the pages of memd/docs/ show, tried."""

import re
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from memd.config.load import parse
from memd.config.settings import Config
from memd.providers.api_keys import ChoiceInputs
from memd.providers.choose import choose
from memd.providers.remote.spec import ProviderSpec

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = sorted((ROOT / "memd" / "docs").glob("*.md"))
PAPERS = {
    str(file.relative_to(ROOT)): file.read_text(encoding="utf-8")
    for file in (README, *PAGES, *sorted((ROOT / "memd").glob("*.md")), ROOT / "client" / "PROTOCOL.md")
}
HOME = Path("/home/ada")


def _blocks(language: str) -> list[str]:
    fence = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [block for text in PAPERS.values() for block in fence.findall(text)]


BLOCKS = _blocks("toml")
ENVIRON = {
    "OPENAI_API_KEY": "sk-1",
    "GEMINI_API_KEY": "g-1",
    "VOYAGE_API_KEY": "pa-1",
    "MEMD_GEMINI_KEY": "g-2",
}


def _config(block: str) -> Config:
    return parse(block, HOME / ".config" / "memd" / "config.toml", HOME)


def test_there_are_configurations_in_it() -> None:
    """The one at the beginning, and those of the providers."""
    assert len(BLOCKS) > 10


@pytest.mark.parametrize("block", BLOCKS)
def test_a_configuration_can_be_used_as_it_is(block: str) -> None:
    """It is right, and with the keys that it speaks of its provider can be had, and a fallback that it names."""
    for settings in _config(block).agents.values():
        choice = choose(settings, ChoiceInputs(ENVIRON, HOME, lambda _: "k-1\n"))
        assert (choice.passed_over, choice.no_fallback) == ((), None)
        match choice.primary:
            case None:
                assert settings.provider == "none"
            case ProviderSpec() as recipe:
                assert settings.provider in {recipe.provider, "auto"}
            case provider:
                assert provider.identity.provider == settings.provider


@pytest.mark.parametrize(
    "provider", ["openai", "gemini", "voyage", "ollama", "openai-compatible", "local", "none"]
)
def test_there_is_a_configuration_for_each_provider(provider: str) -> None:
    """To copy."""
    configured = {settings.provider for block in BLOCKS for settings in _config(block).agents.values()}
    assert provider in configured


@pytest.mark.parametrize("block", _blocks("python"))
def test_an_example_in_python_imports_what_there_is(block: str) -> None:
    """The rest of it may need a daemon, or a model."""
    compile(block, "example", "exec")
    exec("\n".join(line for line in block.splitlines() if line.startswith("from ")), {})


@pytest.mark.parametrize("paper", PAPERS)
def test_links_lead_to_files_and_headings_that_exist(paper: str) -> None:
    """An address of the web is not asked for."""
    for target in re.findall(r"\]\(([^)\s]+)\)", PAPERS[paper]):
        if target.startswith("https://"):
            continue
        path, _, heading = target.partition("#")
        file = (ROOT / paper).parent / path if path else ROOT / paper
        assert file.is_file(), target
        assert not heading or heading in _anchors(file.read_text(encoding="utf-8")), target


def _anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub forms them."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_leads_to_every_page() -> None:
    """And is short enough to be read."""
    text = PAPERS["README.md"]
    assert [page.name for page in PAGES if f"(memd/docs/{page.name})" not in text] == []
    assert len(text.splitlines()) < 300


def test_a_wheel_brings_the_pages(tmp_path: Path) -> None:
    """`memd-ctl help` reads them there; they are text alone."""
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as packed:
        brought = {name for name in packed.namelist() if name.startswith("memd/docs/")}
    assert brought == {f"memd/docs/{page.name}" for page in PAGES}
