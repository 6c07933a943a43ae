"""Where the value of a setting comes from. Pure."""

from collections.abc import Mapping

from memd.config.toml_lines import Key


def origin(key: Key, known: Mapping[Key, int]) -> str:
    """The line that says what a setting is, in words: ``line 4``, ``line 2, [defaults]``, or ``default``.

    Args:
        key: Of the whole configuration: ("agents", "main", "query", "max_results").
        known: The lines of the keys of the file; see statements.lines.
    """
    own = known.get(key)
    shared = known.get(("defaults", *key[2:])) if key[:1] == ("agents",) else None
    if own is not None and shared is not None and key[2:] == ("extra_paths",):
        return f"lines {own} and {shared}, [defaults]"  # they are those of both
    if own is not None:
        return f"line {own}"
    return "default" if shared is None else f"line {shared}, [defaults]"
