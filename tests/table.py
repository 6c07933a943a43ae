"""Tables of many small cases, tried as one test.

pytest takes some milliseconds for each row of `parametrize`, in the process that runs it and in each that collects it, which is more
than most rows take. Rows that need a fixture, or time, are better off there: each has its own, and a limit of its own.
"""

from collections.abc import Callable, Iterable


def table(
    names: str | tuple[str, ...], rows: Iterable[object]
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Make one test of a function and all rows: every row is tried, and every row that fails is told.

    Args:
        names: The argument that a row is, or the arguments that its parts are.
        rows: Read at once.

    Raises:
        ValueError: there are no rows, so that nothing would be tried.
    """
    cases = [
        (row, {names: row} if isinstance(names, str) else dict(zip(names, _parts(row), strict=True)))
        for row in rows
    ]
    if not cases:
        raise ValueError("a table without rows tries nothing")

    def of_function(test: Callable[..., None]) -> Callable[[], None]:
        def tried() -> None:
            failures = []
            for number, (row, arguments) in enumerate(cases, 1):
                try:
                    test(**arguments)
                except Exception as error:  # noqa: BLE001 - each is told below
                    error.add_note(f"row {number}: {row!r}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(cases)} rows failed", failures)

        # Without __wrapped__, by which pytest would ask for the arguments.
        tried.__name__, tried.__qualname__ = test.__name__, test.__qualname__
        tried.__module__, tried.__doc__ = test.__module__, test.__doc__
        return tried

    return of_function


def _parts(row: object) -> tuple[object, ...]:
    if not isinstance(row, tuple | list):
        raise TypeError(f"not a row of several parts: {row!r}")
    return tuple(row)
