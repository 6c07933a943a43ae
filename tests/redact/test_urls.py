"""Credentials in URLs, as long as they may be, and in other addresses."""

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.bounds import shipped

USER, PASSWORD = "u" * 200, "p4" * 150


@pytest.mark.parametrize(("user", "password"), [(USER, PASSWORD), ("", PASSWORD), (USER, "p4")])
def test_the_longest_name_and_password_go(user: str, password: str) -> None:
    """What is looked at for the sign behind them is as long as both together."""
    text = f"https://{user}:{password}@example.org/path"
    assert len(f"://{user}:{password}@") <= shipped("memd.redact.programs.urls._LONGEST")
    assert Redactor(Redact()).redact(text).text == text.replace(password, "[REDACTED:url-password]")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (
            "节点：ss://YWVzLTI1Ni1nY206VXg2N05EcXJldTgyWUQ=@10.1.2.3:8388#a",
            "YWVzLTI1Ni1nY206VXg2N05EcXJldTgyWUQ",
        ),
        (
            "RPC=https://eth-sepolia.g.alchemy.com/v2/m2EjHTKZhR_tqfAlORx4SYtmkIyAvnRo",
            "m2EjHTKZhR_tqfAlORx4SYtmkIyAvnRo",
        ),
        ("外网面板地址: https://10.1.2.3:31882/4a85f994\n", "4a85f994"),
    ],
)
def test_what_is_in_an_address_goes(text: str, secret: str) -> None:
    """Of a proxy, a node and a panel."""
    redacted = Redactor(Redact()).redact(text).text
    assert secret not in redacted
    assert redacted.startswith(text[:4])


@pytest.mark.parametrize(
    "text",
    [
        "wss://example.org/socket and ss://",
        "访问路径: /index",
    ],
)
def test_what_only_looks_like_an_address_stays(text: str) -> None:
    """Other schemes, and paths of words."""
    assert Redactor(Redact()).redact(text).text == text
