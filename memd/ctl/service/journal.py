"""What a service wrote, from systemd's journal."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from subprocess import DEVNULL, PIPE

from memd.ctl.failures import Failed
from memd.ctl.output.humanize import one_line, visible
from memd.ctl.service.systemd import SERVICE


def written(environ: Mapping[str, str], *, lines: int | None, follow: bool) -> Iterator[bytes]:
    """The lines of the service, with what systemd says of it, as they come.

    Args:
        environ: Of the process.
        lines: Only the last ones; None: all that are kept.
        follow: Whether to wait for more, for ever.

    Raises:
        Failed: the journal cannot be read.
    """
    tool = shutil.which("journalctl", path=environ.get("PATH"))
    if tool is None:
        raise Failed(
            "failed", "There is no journalctl on the PATH.", "See where the log of the system is kept here."
        )
    # Without --user: where the journal is not kept on the disk, a user has none of their own.
    words = [
        tool,
        f"--user-unit={SERVICE}",
        "--output=cat",
        "--quiet",
        "--no-pager",
    ]
    words += [f"--lines={lines}"] if lines is not None else []
    words += ["--follow"] if follow else []
    with subprocess.Popen(words, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=dict(environ)) as journal:  # noqa: S603  the words are our own
        assert journal.stdout is not None
        assert journal.stderr is not None
        try:
            yield from journal.stdout
            told = journal.stderr.read().decode("utf-8", "replace")
        finally:
            # Whoever reads may have seen enough.
            journal.terminate()
    if journal.returncode > 0:
        raise Failed("failed", f"journalctl failed: {visible(one_line(told)) or journal.returncode}")
