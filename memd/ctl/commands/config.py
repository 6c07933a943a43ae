"""memd-ctl config and reload: checks, shows, writes or applies the configuration."""

import os
from collections.abc import Iterator
from pathlib import Path

import tomlkit

from memd.config.load import DEFAULT_WORKSPACE, leads_nowhere, load, location, parse, read
from memd.config.settings import Chunking, Config
from memd.config.toml_lines import lines
from memd.ctl.atomic_write import write_text
from memd.ctl.config import check, starter
from memd.ctl.config.check import ValuePlace, exposed_key_files, overlaps, remarks_on_sources
from memd.ctl.config.edit import example
from memd.ctl.failures import BAD_CONFIG, NOT_FOUND, Failed
from memd.ctl.invocation import Invocation
from memd.ctl.output.humanize import counted, listed, shown, visible
from memd.ctl.output.terminal import Outcome
from memd_client.messages import Reloaded


def run_config(invocation: Invocation) -> Outcome:
    """Run the action of the command line."""
    match invocation.options.action:
        case "check":
            return _check(invocation)
        case "show":
            return _show(invocation)
        case "import":
            return _import(invocation)
        case _:
            return _init(invocation)


def _check(invocation: Invocation) -> Outcome:
    config, home = _load(invocation), invocation.places.home
    remarks = (
        *_remarks(config, home),
        *remarks_on_sources(config, invocation.environ, invocation.places),
        *_about_providers(config, invocation),
    )
    agents = f"{counted(len(config.agents), 'agent')} ({', '.join(sorted(config.agents))})"
    if config.file is None:
        usual, _ = location(None, invocation.environ, home)
        text = f"There is no {shown(usual, home)}: built-in defaults hold, {agents}."
    else:
        text = f"{shown(config.file, home)} is valid: {agents}."
    file = None if config.file is None else str(config.file)
    return Outcome({"file": file, "agents": sorted(config.agents), "remarks": remarks}, text, remarks)


def _remarks(config: Config, home: Path) -> Iterator[str]:
    """Yield remarks on settings that are allowed but probably not intended."""
    for name, agent in sorted(config.agents.items()):
        workspace = shown(agent.workspace, home)
        if not os.path.lexists(agent.workspace):
            yield f"The workspace of {name} does not exist yet: {workspace}"
        elif not agent.workspace.is_dir():
            yield f"The workspace of {name} is no directory: {workspace}"
        yield from _about_chunks(name, agent.chunking)
    for one in overlaps(config.agents):
        directory, what = shown(one.directory, home), "notes" if one.is_of_notes else "transcripts"
        if one.is_mutual:
            yield f"{one.reader} and {one.owner} search the same {what}: {directory}"
        else:
            yield f"{one.reader} searches {what} of {one.owner} too: {directory}"


def _about_chunks(name: str, chunking: Chunking) -> Iterator[str]:
    """Yield a remark if one of the two limits of a chunk was set and can never be reached."""
    tokens, chars = chunking.tokens, chunking.max_chars
    if tokens == Chunking().tokens or 4 * tokens <= chars:
        return
    does = "changes nothing" if tokens >= chars else "changes nothing but how Chinese is cut"
    yield (
        f"{name}: chunking.tokens = {tokens} {does}: a chunk has at most chunking.max_chars ({chars}) characters, which are "
        f"{chars // 4} tokens of English and {chars} of Chinese. max_chars = {4 * tokens} has it count."
    )


def _about_providers(config: Config, invocation: Invocation) -> Iterator[str]:
    """Yield remarks on readable key files, on the providers that get the notes, and on providers that were not chosen."""
    # Imported late, as it imports numpy, which other commands do not need.
    from memd.providers.api_keys import ChoiceInputs, read_small  # noqa: PLC0415 - likewise
    from memd.providers.choose import ProviderChoice, choose  # noqa: PLC0415 - a hook waits for other commands
    from memd.providers.remote.spec import ProviderSpec  # noqa: PLC0415 - likewise

    home = invocation.places.home
    for file, mode in exposed_key_files(config):
        name = shown(file, home)
        yield f"{name} holds a key, and others may read it (mode {mode:04o}): chmod 600 {name}"
    inputs = ChoiceInputs(invocation.environ, home, read_small)
    for agent, settings in sorted(config.agents.items()):
        match choose(settings, inputs):
            case ProviderChoice(primary=ProviderSpec() as recipe) as choice if (
                settings.provider == "auto" and not settings.remote.base_url
            ):
                yield (
                    f"{agent}: with the environment of this shell, auto takes {recipe.provider}: {choice.because}."
                    ' provider = "local" keeps them here.'
                )
            case ProviderChoice(primary=None, reason=str(reason)) if settings.provider != "none":
                yield f"{agent}: search is by keywords alone. {' '.join(reason.split())}"
            case ProviderChoice(passed_over=passed_over) if settings.provider != "auto" and passed_over:
                yield f"{agent}: its fallback {settings.fallback} serves. {passed_over[0].reason}"
            case ProviderChoice(no_fallback=str(reason)):
                yield f"{agent}: it has no fallback. {reason}"
            case _:
                pass


def _show(invocation: Invocation) -> Outcome:
    config, home = _load(invocation), invocation.places.home
    known = lines(read(config.file, home)) if config.file is not None else {}
    tables = check.effective(config)
    places = _places(invocation, config)
    data = {
        "file": None if config.file is None else str(config.file),
        **tables,
        "places": places,
        "origins": check.origins(tables, known),
    }
    return Outcome(data, check.in_force_text(tables, known, places, invocation.screen.paint))


def _places(invocation: Invocation, config: Config) -> dict[str, ValuePlace]:
    """Return the paths in use, and what determines each."""
    options, here = invocation.options, invocation.places
    usual, _ = location(None, invocation.environ, here.home)
    no_file = f"built-in defaults: there is no {shown(usual, here.home)}"
    file = no_file if config.file is None else shown(config.file, here.home)

    def place(path: str, flag: str, given: str | None, variables: tuple[str, ...]) -> ValuePlace:
        said = [flag] if given else [name for name in variables if invocation.environ.get(name)]
        return ValuePlace(path, (said or ["usual place"])[0])

    return {
        "config": (
            ValuePlace(file, "named here")
            if options.file is not None
            else place(file, "--config", options.config, ("MEMD_CONFIG", "XDG_CONFIG_HOME"))
        ),
        "state": place(
            shown(here.state, here.home),
            "--state-dir",
            options.state_dir,
            ("MEMD_STATE_DIR", "XDG_STATE_HOME"),
        ),
        "socket": place(
            shown(here.socket, here.home), "--socket", options.socket, ("MEMD_SOCKET", "XDG_RUNTIME_DIR")
        ),
    }


def _init(invocation: Invocation) -> Outcome:
    home = invocation.places.home
    file, _ = location(invocation.places.config, invocation.environ, home)
    replaced = os.path.lexists(file)
    if replaced and not file.exists():
        raise Failed("exists", f"{shown(file, home)} {leads_nowhere(file)}")
    if replaced and not invocation.options.force:
        raise Failed(
            "exists",
            f"{shown(file, home)} is there already; it was left alone.",
            "--force replaces it. `memd-ctl config check` says whether it is valid.",
        )
    there = starter.find_installed_agents(invocation.environ)
    choice = starter.choose_sources(invocation, there)
    write_text(file, starter.starter_config(example(), choice, there))
    workspace = Path(DEFAULT_WORKSPACE.replace("~", str(home), 1))
    is_there = workspace.is_dir()
    found = (
        f"It names the workspace of OpenClaw, which is there: {DEFAULT_WORKSPACE}."
        if is_there
        else f"It names {DEFAULT_WORKSPACE}, which is not there: change it, or run `memd-ctl up DIR`."
    )
    data = {
        "file": str(file),
        "replaced": replaced,
        "workspace": str(workspace),
        "workspace_exists": is_there,
        "memory_presets": choice.memory,
        "session_presets": choice.sessions or (),
        "found": there,
    }
    lines = [f"Wrote {shown(file, home)}. {found}"]
    notes = [starter.notes_in_words(one) for one in there if one.preset in choice.memory]
    if notes:
        lines.append(f"memd will also search the notes of {listed(notes)}.")
    transcripts = [one for one in there if one.transcripts]
    if choice.sessions:
        named = listed([starter.NAMES[preset] for preset in choice.sessions])
        lines.append(f"memd will also search the transcripts of {named}, without secrets.")
    elif choice.sessions is None and transcripts:
        lines.append(
            f"Not searched are the transcripts of {listed(list(map(starter.transcripts_in_words, transcripts)))}: "
            "they are named in it in a comment; --sessions AGENTS has them searched."
        )
    return Outcome(data, "\n".join(lines))


def _import(invocation: Invocation) -> Outcome:
    """Convert the memory settings of OpenClaw's configuration to one of memd, and write or print it."""
    # Only this action needs it.
    from memd.ctl.commands.openclaw import read_config  # noqa: PLC0415
    from memd.ctl.config.from_openclaw import imported  # noqa: PLC0415
    from memd.ctl.integrations.openclaw import places_of  # noqa: PLC0415

    home = invocation.places.home
    places = places_of(invocation.environ, home)
    source = shown(places.config, home)
    if not places.config.exists():
        raise Failed(
            "not_found",
            f"There is no {source}.",
            "OPENCLAW_CONFIG_PATH may name the file.",
            exit_code=NOT_FOUND,
        )
    tables, remarks = imported(read_config(places), places, invocation.environ, home)
    file, _ = location(invocation.places.config, invocation.environ, home)
    name = visible(shown(file, home))
    text = f"# Made of {source} by memd-ctl config import.\n\n{tomlkit.dumps(tables)}"
    parse(text, file, home)
    notes = tuple(visible(remark) for remark in remarks)
    data = {"source": str(places.config), "file": str(file), "written": False, **tables, "remarks": notes}
    if invocation.options.print:
        return Outcome(data, text, notes)
    if os.path.lexists(file) and not invocation.options.force:
        raise Failed(
            "exists",
            f"{name} is there already; it was left alone.",
            "--print shows what would be written; --force replaces the file.",
        )
    write_text(file, text)
    agents = f"{counted(len(tables['agents']), 'agent')} ({', '.join(sorted(tables['agents']))})"
    return Outcome({**data, "written": True}, f"Wrote {name}: {agents}, as {source} has them.", notes)


def _load(invocation: Invocation) -> Config:
    return load(_named(invocation), invocation.environ, invocation.places.home)


def _named(invocation: Invocation) -> Path | None:
    """Return the path of the file to read, if one was given."""
    return invocation.places.config if invocation.options.file is None else Path(invocation.options.file)


_RELOADS_S = 30.0


def run_reload(invocation: Invocation) -> Outcome:
    """Let the daemon read the configuration file, and wait until it is applied."""
    reply = reloaded(invocation)
    file = (
        "the built-in defaults"
        if reply.config is None
        else visible(shown(reply.config, invocation.places.home))
    )
    text = f"memd uses {file}; " + (
        f"changed: {visible(', '.join(reply.changed))}." if reply.changed else "nothing had changed."
    )
    return Outcome({"config": reply.config, "changed": reply.changed}, text)


def reloaded(invocation: Invocation) -> Reloaded:
    """Reload the configuration; return the daemon's reply.

    Raises:
        Failed: the configuration is invalid.
        MemdClientError: the daemon does not answer.
    """
    with invocation.client(_RELOADS_S) as memd:
        reply = memd.reload()
    if reply.error is not None:
        raise Failed(
            "bad_config",
            f"memd keeps its old configuration, since the new one is wrong:\n{reply.error}",
            "Fix the file, then run this again.",
            exit_code=BAD_CONFIG,
        )
    return reply
