"""Whether systemd keeps the services of a user who is not logged in."""

from collections.abc import Mapping

from memd.ctl.failures import Failed
from memd.ctl.service.manager import run
from memd.ctl.service.supervisor import ManagerCommand

REMEDY = "loginctl enable-linger"
_ASK_S = 5.0


def lingers(uid: int, environ: Mapping[str, str]) -> bool | None:
    """Whether it does; None where nobody tells."""
    order = ManagerCommand(("loginctl", "show-user", str(uid), "--property=Linger"))
    try:
        done = run(order, environ, _ASK_S)
    except Failed:
        return None
    return {"Linger=yes": True, "Linger=no": False}.get(done.out.strip()) if not done.code else None
