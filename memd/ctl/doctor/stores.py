"""Whether the databases of the state directory are sound: each agent's index, and the cache. Pure."""

from pathlib import Path

from memd.ctl.doctor.finding import DoctorContext, Finding, quoted, right, unchecked, wrong
from memd.ctl.output.humanize import counted, one_line, size
from memd.inspection.facts import Cache, Store

_NEVER_LOST = "no note is lost by that"


def check_store(store: Store, context: DoctorContext, *, is_ours: bool, knows_config: bool) -> list[Finding]:
    """Whether an index is sound, and fits the configuration.

    Args:
        store: As it was found.
        context: Places, platform and user.
        is_ours: Whether the state directory is this user's.
        knows_config: Whether the configuration could be read.
    """
    name, fit = _name(store.agent, "index"), _name(store.agent, "fit")
    findings = [_index(store, name, context, is_ours=is_ours, knows_config=knows_config)]
    if not knows_config:
        findings.append(unchecked(fit, "the configuration is wrong"))
    elif store.configured:
        findings.append(_fit(store, fit))
    return [
        *findings,
        *_copies(store, _name(store.agent, "copy"), context),
        *_damaged(store, _name(store.agent, "damaged"), context),
    ]


def _index(store: Store, name: str, context: DoctorContext, *, is_ours: bool, knows_config: bool) -> Finding:
    told = _trouble(store, name, context, is_ours=is_ours)
    if told is not None:
        return told
    if not store.exists:
        return right(name, "none yet: the daemon makes it")
    detail = f"sound: {counted(store.files, 'file')}, {counted(store.chunks, 'chunk')}, {size(store.bytes)}"
    if knows_config and not store.configured:
        detail += (
            f"; left over, no agent of this name is configured (rm {quoted(store.file)} if it is not needed)"
        )
    return right(name, detail)


def _fit(store: Store, name: str) -> Finding:
    if not store.exists or store.unchecked or store.closed or store.faults or not store.known_schema:
        return unchecked(name, "there is no index to compare with" if not store.exists else "see the index")
    if store.schema > store.known_schema:
        return unchecked(name, "a newer memd wrote the index")
    if store.rebuild is None:
        return right(name, "the index was built for the configuration as it is")
    return right(name, f"the index is built anew when the daemon reads the configuration: {store.rebuild}")


def check_cache(cache: Cache, context: DoctorContext, *, is_ours: bool) -> list[Finding]:
    """Whether what was paid for is sound: the vectors by text hash."""
    name = "state.embeddings"
    told = _trouble(cache, name, context, is_ours=is_ours)
    if told is None and not cache.exists:
        told = right(name, "none yet: the daemon makes it")
    if told is None:
        told = right(name, f"sound: {counted(cache.rows, 'vector')}, {size(cache.bytes)}")
    left = [_files_left(cache)] if cache.files else []
    return [told, *left, *_copies(cache, "state.copy", context), *_damaged(cache, "state.damaged", context)]


def _files_left(cache: Cache) -> Finding:
    return wrong(
        "state.batch_files",
        "batch jobs that have ended left files at their provider, with text of notes and transcripts: "
        + ", ".join(map(one_line, cache.files)),
        "The daemon tries to delete them again and again, for a month; delete them at the provider's yourself "
        "where its key is not configured any more.",
    )


def _trouble(store: Store | Cache, name: str, context: DoctorContext, *, is_ours: bool) -> Finding | None:
    """What keeps a database from being of use; None: nothing."""
    if store.unchecked is not None:
        return unchecked(name, store.unchecked)
    if store.closed is not None:
        if not is_ours:
            return unchecked(name, f"the state directory is another user's ({store.closed})")
        return wrong(
            name,
            f"{context.shown(store.file)} cannot be opened: {store.closed}",
            f"Give its owner the right: chmod 600 {quoted(store.file)}",
        )
    file = quoted(store.file)
    if store.faults:
        lost = (
            _NEVER_LOST if isinstance(store, Store) else "vectors are computed anew where an index lacks them"
        )
        remove = f"rm -f {file} {file}-wal {file}-shm"
        return wrong(
            name,
            f"{context.shown(store.file)} is damaged: {one_line('; '.join(store.faults))}",
            f"Have it made anew, {lost}: {context.ctl('down')}; {remove}; {context.ctl('up')}",
        )
    if store.schema > store.known_schema:
        return wrong(
            name,
            f"{context.shown(store.file)} was written by a newer memd (schema {store.schema}, "
            f"this one knows {store.known_schema})",
            f"Upgrade this one ({context.pip('install', '--upgrade', 'memd-daemon')}), or {_way_back(store, context)}",
        )
    return None


def _way_back(store: Store | Cache, context: DoctorContext) -> str:
    """What else to do about a file of a newer memd."""
    file = quoted(store.file)
    for copy in store.copies:
        if 0 < copy.schema <= store.known_schema:
            kept = quoted(Path(store.file).with_name(copy.name))
            return (
                "go back to the copy that the newer one made before: "
                f"{context.ctl('down')}; rm -f {file}-wal {file}-shm; mv {kept} {file}; {context.ctl('up')}"
            )
    return f"move the file away: mv {file} {file}.newer"


def _copies(store: Store | Cache, name: str, context: DoctorContext) -> list[Finding]:
    """What is kept of a store as an earlier memd left it, which is no fault."""
    if not store.copies:
        return []
    told = ", ".join(f"{copy.name} ({size(copy.bytes)})" for copy in store.copies)
    folder = Path(store.file).parent
    remove = " ".join(quoted(folder / copy.name) for copy in store.copies)
    until = (
        "The daemon deletes it once the new one is a day old, sound, and a whole pass has succeeded with it"
        if isinstance(store, Cache) or store.configured
        else f"No agent of this name is configured: rm {remove} if it is not needed"
    )
    return [
        right(
            name,
            f"kept in {context.shown(folder)}: {told}, as it was before it was brought up to date. {until}",
        )
    ]


def _damaged(store: Store | Cache, name: str, context: DoctorContext) -> list[Finding]:
    if not store.damaged:
        return []
    folder = Path(store.file).parent
    return [
        wrong(
            name,
            f"{counted(len(store.damaged), 'file')} set aside as damaged in {context.shown(folder)}: "
            f"{', '.join(store.damaged)}",
            "They are of no use any more, and hold what notes held: rm -f "
            + " ".join(f"{quoted(folder / file)}*" for file in store.damaged),
        )
    ]


def _name(agent: str, check: str) -> str:
    return f"agents.{agent}.{check}"
