"""The page in a real browser, used by clicking and typing, and attacked by pages of other sites.

With MEMD_SCREENSHOTS=DIRECTORY the pictures of each view are written there; those beside this file were made so.
"""

import http.server
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.client.web.conftest import TOKEN, Page, end, page_daemon, start
from tests.daemon.process import Daemon
from tests.web.browser import CHROMIUM, DOWN, DRIVER, Browser, browsing

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="there is no chromium with its chromedriver"
)
AXE = "axe-core@4.14.1"


@pytest.fixture(scope="module")
def remembering() -> Iterator[Daemon]:
    """A daemon with things to see."""
    with page_daemon() as daemon:
        yield daemon


@contextmanager
def served(daemon: Daemon) -> Iterator[tuple[Page, str]]:
    """A server, and the file that opens its page."""
    with tempfile.TemporaryDirectory() as scratch:
        page = start(daemon, Path(scratch))
        [file] = Path(scratch).iterdir()
        try:
            yield page, file.as_uri()
        finally:
            status = end(page)
        assert status == 0


def pictured(browser: Browser, name: str) -> None:
    """Keep a picture, where somebody wants them."""
    if directory := os.environ.get("MEMD_SCREENSHOTS"):
        browser.picture(Path(directory) / f"{name}.png")


def test_a_person_looks_around(remembering: Daemon) -> None:
    """From the file that opens the page through every view, by mouse and by keys, and nothing complains."""
    with served(remembering) as (page, opener), browsing() as browser:
        browser.open(opener)
        browser.find("#query")
        # The token is gone from the address, and from the history.
        assert browser.run("return location.href") == f"http://127.0.0.1:{page.port}/"
        browser.type("which database")
        browser.find("#hits .entry", "PostgreSQL")
        assert "database" in browser.texts("#hits mark")
        browser.type(DOWN)
        browser.find("#pane .hit")
        browser.click("#why")
        browser.find("#hits .why", "by meaning")
        pictured(browser, "search")
        browser.devtools(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}]
        )
        pictured(browser, "dark")
        browser.devtools("Emulation.setEmulatedMedia", features=[])
        browser.type("/")
        assert browser.run("return document.activeElement.id") == "query"

        browser.click("nav button", "Browse")
        browser.click("#files .entry", "memory/")
        browser.click("#files .entry", "2026-02-09.md")
        browser.find("#pane h1", "Monday")
        browser.click("#pane button", "Lines")
        browser.find("#pane .lines", "# Monday")
        browser.click("#pane button", "Chunks")
        browser.find("#pane .chunk", "lighthouse")
        browser.click("#list button", "Days")
        browser.click("#files .entry", "sessions/")
        browser.find("#pane .turn", "Which database did we pick?")
        browser.find("#pane .redacted", "github-token")
        assert TOKEN not in browser.run("return document.documentElement.outerHTML")
        pictured(browser, "conversation")

        browser.click("nav button", "State")
        browser.find("#list th", "chunks")
        browser.find("#list th", "sent so far")
        browser.find("#list .latencies")
        with remembering.client() as client:
            asked = client.status().agents["main"].searches
        assert asked is not None
        columns = "return document.querySelectorAll('#list .latencies span').length"
        browser.until(lambda: browser.run(columns) == asked.count)
        assert f"; half within {asked.median_ms:g} ms" in browser.texts("#list figcaption")[0]
        # What an editor saves is seen as it happens.
        (remembering.workspace / "memory" / "2026-02-11.md").write_text("# Wednesday\n\nIt rained.\n")
        browser.find("#list .passes li", "changed 1")
        browser.click("#doctor")
        browser.find("#pane .finding", "daemon.version")
        pictured(browser, "state")
        assert browser.complaints() == []


def test_dark_narrow_and_chinese(remembering: Daemon) -> None:
    """As the system is set; nothing is wider than a narrow window."""
    with served(remembering) as (_, opener), browsing(language="zh-CN") as browser:
        browser.devtools(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}]
        )
        browser.open(opener)
        browser.find("nav button", "搜索")
        browser.type("数据库", "#query")
        browser.find("#hits .entry", "数据库")
        assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(23, 24, 26)"
        browser.devtools(
            "Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True
        )
        browser.until(lambda: browser.run("return innerWidth") == 390)
        assert browser.run("return document.documentElement.scrollWidth") <= 390
        pictured(browser, "narrow")


def test_a_hostile_note_does_nothing(remembering: Daemon) -> None:
    """It is shown, in each form; no script runs, nothing is fetched, and no link leads anywhere."""
    with served(remembering) as (page, opener), browsing() as browser:
        browser.open(opener)
        browser.click("nav button", "Browse")
        browser.click("#files .entry", "memory/")
        for path in ("hostile.md", "wide.md"):
            browser.click("#files .entry", path)
            for way in ("Page", "Lines", "Chunks"):
                browser.click("#pane button", way)
                browser.find(".note *")
                assert (
                    browser.run(
                        "return document.querySelectorAll('.note :is(script, img, iframe, a[href], [onerror], [style])').length"
                    )
                    == 0
                )
                assert browser.run("return document.title") == "memd"
        browser.click("#files .entry", "hostile.md")
        browser.find("#pane .control", "U+202E")
        browser.find("#pane .inert", "a picture")
        browser.find("#pane", "<script>")
        fetched = browser.run("return performance.getEntriesByType('resource').map((one) => one.name)")
        assert fetched
        assert all(name.startswith(f"http://127.0.0.1:{page.port}/") for name in fetched)
        with pytest.raises(AssertionError, match="TrustedHTML"):
            browser.run("document.body.innerHTML = '<b>x</b>'")


def test_an_address_opens_once(remembering: Daemon) -> None:
    """The second time it says so; the page that was opened goes on, and another tab of it is not open."""
    with served(remembering) as (page, opener), browsing() as browser:
        address = f"http://127.0.0.1:{page.port}/#{page.token}"
        browser.open(opener)
        browser.find("#query")
        browser.open("about:blank")
        browser.open(f"http://127.0.0.1:{page.port}/")
        browser.find("#query")
        browser.run("sessionStorage.clear()")
        browser.open("about:blank")
        browser.open(address)
        browser.find("#notice", "older than a minute")
        browser.open("about:blank")
        browser.open(f"http://127.0.0.1:{page.port}/")
        browser.find("#notice", "memd-ctl web")
        assert browser.texts("#query") == []


ATTACK = """
const [port, secret] = arguments;
const at = `http://127.0.0.1:${port}`;
const told = {};
const attempt = async (name, act) => { try { told[name] = await act(); } catch (error) { told[name] = "refused"; } };
const body = JSON.stringify({ type: "status" });
const json = { "content-type": "application/json", "x-memd-secret": secret };
return (async () => {
  await attempt("fetch", async () => (await fetch(`${at}/api/ask`, { method: "POST", headers: json, body })).status);
  await attempt("plain", async () => (await fetch(`${at}/api/ask`, { method: "POST", body })).status);
  await attempt("page", async () => (await fetch(`${at}/`)).text());
  await attempt("opaque", async () => (await fetch(`${at}/api/ask`, { method: "POST", mode: "no-cors", body })).type);
  await attempt("script", () => new Promise((done) => {
    const script = document.createElement("script");
    script.src = `${at}/main.js`;
    script.onload = () => done("loaded");
    script.onerror = () => done("refused");
    document.head.append(script);
  }));
  await attempt("frame", () => new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.src = `${at}/`;
    frame.onload = () => { try { done(frame.contentDocument === null ? "refused" : frame.contentDocument.title); } catch { done("refused"); } };
    document.body.append(frame);
  }));
  return told;
})();
"""


class _Evil(http.server.BaseHTTPRequestHandler):
    """A page of somebody else."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>evil</title><body>evil")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library has it
        """Say nothing."""


def test_other_sites_get_nothing(remembering: Daemon) -> None:
    """A page on another port of this machine, though it had the secret; and a name that was rebound to this machine."""
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Evil) as site,
        served(remembering) as (page, opener),
        browsing("--host-resolver-rules=MAP evil.example 127.0.0.1") as browser,
    ):
        threading.Thread(target=site.serve_forever, daemon=True).start()
        browser.open(opener)
        browser.find("#query")
        secret = browser.run("return sessionStorage.getItem('memd-secret')")
        assert len(secret) == 43
        for name in ("127.0.0.1", "localhost", "evil.example"):
            browser.open(f"http://{name}:{site.server_port}/")
            assert browser.run("return [document.title, sessionStorage.length, document.cookie]") == [
                "evil",
                0,
                "",
            ]
            told = browser.run(ATTACK, page.port, secret)
            assert told == dict.fromkeys(
                ("fetch", "plain", "page", "opaque", "script", "frame"), "refused"
            ), name
        browser.open(f"http://evil.example:{page.port}/")
        assert browser.run("return document.body.innerText.trim()") == "This host is not served."
        asked = "return fetch('/api/ask', { method: 'POST', headers: { 'content-type': 'application/json', 'x-memd-secret': arguments[0] }, body: '{\"type\": \"status\"}' }).then((one) => one.status)"
        assert browser.run(asked, secret) == 403
        site.shutdown()


@pytest.mark.long
def test_axe_finds_nothing(remembering: Daemon, tmp_path: Path) -> None:
    """Neither in a list of hits with a note beside, nor in the other views, light and dark."""
    packed = subprocess.run(
        ["npm", "pack", "--silent", AXE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if packed.returncode:
        pytest.skip(f"npm has no {AXE} here")
    subprocess.run(["tar", "xzf", packed.stdout.strip()], cwd=tmp_path, check=True)
    axe = (tmp_path / "package" / "axe.min.js").read_text(encoding="utf-8")
    with served(remembering) as (_, opener), browsing() as browser:
        browser.open(opener)
        browser.type("which database", "#query")
        browser.click("#hits .entry", "PostgreSQL")
        browser.find("#pane .hit")
        browser.click("#why")
        browser.find("#hits .why")
        browser.devtools("Runtime.evaluate", expression=axe)
        for view in ("Search", "Browse", "State"):
            if view != "Search":
                browser.click("nav button", view)
                browser.find("#list .entry, #list th")
            if view == "State":
                browser.click("#doctor")
                browser.find("#pane .finding")
            for scheme in ("light", "dark"):
                browser.devtools(
                    "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
                )
                found = browser.run(
                    "return axe.run().then((told) => told.violations.map((one) => [one.id, one.nodes.map((node) => node.html)]))"
                )
                assert found == [], (view, scheme)
