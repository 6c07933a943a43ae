"""What an address must be like."""

import pytest

from memd.config.server_url import fault, is_readable


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com/v1",
        "HTTPS://API.EXAMPLE.COM",
        "http://127.0.0.1:11434",
        "http://[::1]:8080/v1/",
        "http://gpubox",
        "http://xn--bcher-kva.example",
    ],
)
def test_an_address_may_be(url: str) -> None:
    """Of any host, with a port and a path or without."""
    assert fault(url) is None


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "http://"),
        ("api.example.com/v1", "http://"),
        ("localhost:8080", "http://"),
        ("ftp://example.com", "http://"),
        ("https://", "no server"),
        ("https:///v1", "no server"),
        ("https://:443/v1", "no server"),
        ("https://bücher.example", "no server"),
        ("https://ann:mellon@example.com", "no user"),
        ("https://mellon@example.com", "no user"),
        ("https://example.com/v1?key=mellon", "?"),
        ("https://example.com/v1#mellon", "?"),
        ("https://example.com:99999", "no address"),
        ("https://example.com:mellon", "no address"),
        ("http://[::1", "no address"),
        ("https://example.com/a b", "signs"),
    ],
)
def test_an_address_may_not_be(url: str, words: str) -> None:
    """The fault is said in words that repeat nothing of it: it may hold a key."""
    found = fault(url)
    assert found is not None
    assert words in found
    assert "mellon" not in found


@pytest.mark.parametrize(
    ("url", "readable"),
    [
        ("https://example.com", False),
        ("http://example.com", True),
        ("http://8.8.8.8:80", True),
        ("http://localhost.example.com", True),
        ("http://127.0.0.1.example.com", True),
        ("http://127.0.0.1", False),
        ("http://localhost:1234", False),
        ("http://[::1]:1", False),
        ("http://192.168.1.7", False),
        ("http://10.0.0.1", False),
        ("http://gpubox", False),
        ("http://100.100.1.2:8080", False),
        ("http://100.128.1.2:8080", True),
        ("http://gpubox.tail1234.ts.net", False),
        ("http://gpubox.lan.", False),
    ],
)
def test_what_is_sent_can_be_read_on_its_way(url: str, *, readable: bool) -> None:
    """Without encryption, beyond this machine and its network."""
    assert is_readable(url) is readable
