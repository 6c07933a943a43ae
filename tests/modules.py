"""Names of modules in tests that say what is not loaded."""

from importlib.util import find_spec


def existing(*names: str) -> tuple[str, ...]:
    """The names of modules, each of which can be imported here.

    That a module is not loaded says nothing where none has that name: of one that was renamed, or is misspelt.

    Raises:
        AssertionError: one of them is no module.
    """
    missing = [name for name in names if not _is_found(name)]
    assert not missing, f"no modules: {missing}"
    return names


def _is_found(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # nor is there a package that it could be in
        return False
