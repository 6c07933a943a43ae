"""The entry point of memd-ctl: Ctrl-C ends it without a traceback, also while it loads."""

import sys
from collections.abc import Sequence

from memd.runtime.startup import STATUS, import_msgspec, quiet


def main(argv: Sequence[str] | None = None) -> int:
    """Run memd-ctl; see memd.ctl.program."""
    is_hook = sys.argv[1:2] == ["hook"]  # as memd-ctl installs it
    with quiet(0 if is_hook else STATUS):
        import_msgspec()
        from memd.ctl import program  # noqa: PLC0415 - it takes 50 ms
    return program.main(argv)


if __name__ == "__main__":
    sys.exit(main())
