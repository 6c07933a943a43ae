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
from urllib.parse import quote, unquote

import pytest

from tests.client.web.conftest import HOSTILE_NAMES, TOKEN, Page, end, page_daemon, start
from tests.daemon.process import Daemon
from tests.web.browser import CHROMIUM, DOWN, DRIVER, ENTER, TAB, Browser, browsing

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="there is no chromium with its chromedriver"
)
AXE = "axe-core@4.14.1"


@pytest.fixture(scope="module")
def remembering() -> Iterator[Daemon]:
    """A daemon with things to see."""
    with page_daemon() as daemon:
        with daemon.client() as client:
            for number in range(100):
                client.search(f"which database server moved {number}")
        yield daemon


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """It takes as long to start as most tests take in it. Each server is another site to it, and shares nothing with the others."""
    with browsing() as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """A tab of its own."""
    with chromium.tab() as browser:
        yield browser


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


def search(browser: Browser) -> None:
    """What search looks like in use."""
    browser.click("nav button", say(browser, "Search"))
    browser.run("const query = document.getElementById('query'); query.value = ''; query.focus()")
    browser.type("which database")
    browser.find("#hits .entry", "PostgreSQL")
    browser.type(DOWN)
    browser.find("#pane .hit")
    browser.click("#why")
    browser.find("#hits .why")


def note(browser: Browser) -> None:
    """A note among others."""
    browser.click("nav button", say(browser, "Browse"))
    browser.click("#list button", say(browser, "Folders"))
    browser.click("#files .entry", "memory/")
    browser.click("#files .entry", "2026-02-09.md")
    browser.find("#pane h1", "Monday")


def conversation(browser: Browser) -> None:
    """A transcript, found by its day."""
    browser.click("nav button", say(browser, "Browse"))
    browser.click("#list button", say(browser, "Days"))
    browser.click("#files .entry", "sessions/")
    browser.find("#pane .turn", "Which database did we pick?")
    browser.find("#pane .redacted", "github-token")


def duplicates(browser: Browser) -> None:
    """Two notes that say the same."""
    browser.click("nav button", say(browser, "Browse"))
    browser.click("#list button", say(browser, "Duplicates"))
    browser.click("#files .entry", "2026-02-12.md")
    browser.find("#pane .pair mark", "Bob")


def state(browser: Browser) -> None:
    """How memd is, with what doctor finds."""
    browser.click("nav button", say(browser, "State"))
    browser.find("#list .latencies")
    browser.click("#doctor")
    browser.find("#pane .finding", "daemon.version")


VIEWS = (search, note, conversation, duplicates, state)
_CHINESE = {
    "Search": "搜索",
    "Browse": "浏览",
    "State": "状态",
    "Folders": "文件夹",
    "Days": "日期",
    "Duplicates": "重复",
}


def say(browser: Browser, word: str) -> str:
    """A word as the page says it to this person."""
    return _CHINESE[word] if browser.run("return document.documentElement.lang") == "zh" else word


def in_colours(browser: Browser, scheme: str) -> None:
    """Have the system be light or dark."""
    browser.devtools(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )


@pytest.mark.long
def test_a_person_looks_around(remembering: Daemon, browser: Browser) -> None:
    """From the file that opens the page through every view, by mouse and by keys, light and dark, and nothing complains."""
    with served(remembering) as (page, opener):
        browser.open(opener)
        browser.find("#query")
        # The token is gone from the address, and from the history.
        assert browser.run("return location.href") == f"http://127.0.0.1:{page.port}/"
        for view in VIEWS:
            for scheme, colour in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(23, 24, 26)")):
                in_colours(browser, scheme)
                if scheme == "light":
                    view(browser)
                assert browser.run("return getComputedStyle(document.body).backgroundColor") == colour
                pictured(browser, view.__name__ if scheme == "light" else f"{view.__name__}-dark")
        assert TOKEN not in browser.run("return document.documentElement.outerHTML")
        assert browser.complaints() == []


@pytest.mark.long
def test_what_is_found_is_shown(remembering: Daemon, browser: Browser) -> None:
    """The words lit, the note at its lines, why each hit is one; filters; what opens an editor; a note as lines and chunks."""
    with served(remembering) as (_, opener):
        browser.open(opener)
        search(browser)
        assert "database" in browser.texts("#hits mark")
        # Nothing may be started by a test: what would be is noted.
        browser.run(
            "document.addEventListener('click', (event) => { if (event.target.matches('.editor'))"
            " { event.preventDefault(); window.opened = event.target.href; } })"
        )
        browser.run("document.querySelector('#hits [aria-current]').focus()")
        browser.keys("o")
        assert browser.run("return window.opened") == f"vscode://file{remembering.workspace}/MEMORY.md:1"
        browser.find("#hits .why", "by meaning")
        browser.type("/")
        assert browser.run("return document.activeElement.id") == "query"
        browser.type("memory/ops/**", "#path")
        browser.until(
            lambda: (
                browser.texts("#hits .where") and all("ops" in one for one in browser.texts("#hits .where"))
            )
        )
        browser.run("document.getElementById('path').value = ''")
        browser.type("2027-01-01", "#since")
        browser.find("#about", "Nothing was found.")
        note(browser)
        link = "return document.querySelector('#pane .editor')?.getAttribute('href') ?? null"
        place = f"{remembering.workspace}/memory/2026-02-09.md"
        assert browser.run(link) == f"vscode://file{place}:1"
        for editor, address in (
            ("cursor", f"cursor://file{place}:1"),
            ("zed", f"zed://file{place}:1"),
            ("idea", f"idea://open?file={place}&line=1"),
            ("obsidian", f"obsidian://open?path={quote(place, safe='')}"),
            ("none", None),
        ):
            browser.run(
                "const one = document.getElementById('editor'); one.value = arguments[0];"
                " one.dispatchEvent(new Event('change'))",
                editor,
            )
            note(browser)
            assert browser.run(link) == address
        browser.click("#pane button", "Lines")
        browser.find("#pane .lines", "# Monday")
        browser.click("#pane button", "Chunks")
        browser.find("#pane .chunk", "lighthouse")
        browser.click("#files .entry", "long.md")
        browser.find("#pane h1", "Long")
        browser.click("#pane button", "Chunks")
        browser.find("#pane .chunk .window", "window 1–")
        browser.click("#list button", "Days")
        browser.find("#files .day", "Mar 2, 2026")
        assert browser.complaints() == []


@pytest.mark.long
def test_pairs_beside_each_other(remembering: Daemon, browser: Browser) -> None:
    """What replaced a note beside it, and of two that say the same what the one has more."""
    with served(remembering) as (_, opener):
        browser.open(opener)
        duplicates(browser)
        assert set(browser.texts("#pane .pair mark")) == {"and", "Bob"}
        assert len(browser.texts("#pane .pair .editor")) == 2
        browser.click("#files .entry", "superseded")
        browser.find("#pane .pair h2", "2026-02-10.md")
        browser.find("#pane .tools", "[[2026-02-10]]")


@pytest.mark.long
def test_the_state_is_live(remembering: Daemon, browser: Browser) -> None:
    """Each of the last searches is a column; what an editor saves is seen as it happens; remedies can be copied."""
    with served(remembering) as (_, opener):
        browser.open(opener)
        browser.type("which database", "#query")
        browser.find("#hits .entry", "PostgreSQL")
        state(browser)
        browser.find("#list th", "sent so far")
        with remembering.client() as client:
            asked = client.status().agents["main"].searches
        assert asked is not None
        columns = "return document.querySelectorAll('#list .latencies span').length"
        browser.until(lambda: browser.run(columns) == asked.count)
        assert f"; half within {asked.median_ms:g} ms" in browser.texts("#list figcaption")[0]
        before = len(browser.texts("#list .passes li"))
        note = remembering.write("memory/2026-02-11.md", "# Wednesday\n\nIt rained.\n")
        browser.until(lambda: len(browser.texts("#list .passes li")) > before)
        note.unlink()
        browser.find("#list .passes li", "removed 1")


@pytest.mark.long
def test_a_remedy_is_copied(remembering: Daemon, browser: Browser) -> None:
    """What doctor finds wrong stands first, with what to do; a button puts that on the clipboard."""
    was = remembering.config.read_text()
    with served(remembering) as (page, opener):
        origin = f"http://127.0.0.1:{page.port}"
        browser.devtools(
            "Browser.grantPermissions",
            origin=origin,
            permissions=["clipboardReadWrite", "clipboardSanitizedWrite"],
        )
        browser.open(opener)
        remembering.config.write_text(f"{was}\nno_such_setting = 1\n")
        try:
            browser.click("nav button", "State")
            browser.click("#doctor")
            browser.find("#pane .finding", "no_such_setting")
            assert browser.texts("#pane .finding strong")[0] == "✗ config.file"
            browser.find("#list td", "no_such_setting")
            browser.click("#pane .finding button", "Copy")
            [remedy, *_] = browser.texts("#pane .finding code")
            assert remedy
            copied = browser.run("return navigator.clipboard.readText()")
            assert copied == remedy
        finally:
            remembering.config.write_text(was)


def press(browser: Browser, css: str, text: str = "", *, key: str = ENTER) -> None:
    """Go on with Tab until this has the focus, which can be seen, and press a key."""
    there = "const one = document.activeElement; return one.matches(arguments[0]) && one.textContent.includes(arguments[1])"
    browser.find(css, text)
    for _ in range(80):
        if browser.run(there, css, text):
            break
        browser.keys(TAB)
    else:
        raise AssertionError(f"Tab leads to no {css} {text!r}")
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"
    browser.keys(key)


@pytest.mark.long
def test_by_keys_alone(remembering: Daemon, browser: Browser) -> None:
    """Every view, without a mouse: what has the focus can be seen, and is not lost when a list changes."""
    with served(remembering) as (_, opener):
        browser.open(opener)
        browser.find("#query:focus")
        browser.keys("which database")
        browser.find("#hits .entry", "PostgreSQL")
        browser.keys(DOWN)
        browser.find("#pane .hit")
        press(browser, "#why")
        browser.find("#hits .why")
        press(browser, "nav button", "Browse")
        browser.find("nav button:focus", "Browse")
        press(browser, "#files .entry", "memory/")
        browser.find("#files .entry:focus")
        press(browser, "#files .entry", "2026-02-09.md")
        press(browser, "#pane button", "Chunks")
        browser.find("#pane .chunk")
        press(browser, "#list button", "Duplicates")
        browser.find("#list button:focus", "Duplicates")
        press(browser, "#files .entry", "2026-02-12.md")
        browser.find("#pane .pair")
        press(browser, "nav button", "State")
        press(browser, "#doctor")
        browser.find("#pane .finding")
        press(browser, "#list summary")
        browser.until(lambda: browser.run("return !document.querySelector('#list details').open"))
        browser.keys("/")
        browser.find("#query:focus")


@pytest.mark.long
def test_dark_narrow_and_chinese(remembering: Daemon) -> None:
    """Nothing is wider than a narrow window, in any view; numbers and dates are written as this person writes them."""
    with served(remembering) as (_, opener), browsing(language="zh-CN") as browser:
        browser.devtools(
            "Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True
        )
        browser.open(opener)
        browser.find("nav button", "搜索")
        browser.until(lambda: browser.run("return innerWidth") == 390)
        for view in VIEWS:
            view(browser)
            assert browser.run("return document.documentElement.scrollWidth") <= 390, view.__name__
            if view in {search, state}:
                browser.run("scrollTo(0, 0)")
            pictured(browser, f"{view.__name__}-narrow")
        browser.click("nav button", "浏览")
        browser.click("#list button", "日期")
        browser.find("#files .about", "2026年2月9日")
        in_colours(browser, "dark")
        assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(23, 24, 26)"
        assert browser.complaints() == []


def untouched(browser: Browser, page: Page) -> None:
    """Nothing of a note has done anything to the page."""
    assert (
        browser.run(
            "return document.querySelectorAll('#list :is(script, img, iframe, svg, style, meta, [onerror], [onload]), .note :is(script, img, iframe, svg, style, base, meta, a[href], [onerror], [onload], [style])').length"
        )
        == 0
    )
    assert browser.run("return [document.title, location.href]") == ["memd", f"http://127.0.0.1:{page.port}/"]
    fetched = browser.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert fetched
    assert all(name.startswith(f"http://127.0.0.1:{page.port}/") for name in fetched)


@pytest.mark.long
def test_a_hostile_note_does_nothing(remembering: Daemon, browser: Browser) -> None:
    """It is shown, in each form; no script runs, nothing is fetched, no link leads anywhere, and what reorders text is named."""
    with served(remembering) as (page, opener):
        browser.open(opener)
        browser.type("onerror", "#query")
        browser.find("#hits .entry")
        untouched(browser, page)
        browser.click("nav button", "Browse")
        browser.click("#files .entry", "memory/")
        for path in ("hostile.md", "deep.md"):
            browser.click("#files .entry", path)
            for way in ("Page", "Lines", "Chunks"):
                browser.click("#pane button", way)
                browser.find(".note *")
                untouched(browser, page)
        browser.click("#files .entry", "hostile.md")
        browser.click("#pane button", "Page")
        for code in ("U+202E", "U+2066", "U+200B"):
            browser.find("#pane .control", code)
        browser.find("#pane", "NUL , hidden")  # notes are read without it
        browser.find("#pane .inert", "a picture")
        browser.find("#pane", "<script>")
        for link in browser.run(
            "return [...document.querySelectorAll('#pane .inert')].map((one) => one.tagName)"
        ):
            assert link == "SPAN"
        with pytest.raises(AssertionError, match="TrustedHTML"):
            browser.run("document.body.innerHTML = '<b>x</b>'")


@pytest.mark.long
def test_hostile_names_of_files(remembering: Daemon, browser: Browser) -> None:
    """They are text in the list, in the pane, and among the hits; what they lead to is the file, and nothing else."""
    with served(remembering) as (page, opener):
        browser.open(opener)
        browser.type("yellow submarine", "#query")
        browser.until(
            lambda: sum("odd/" in one for one in browser.texts("#hits .where")) == len(HOSTILE_NAMES)
        )
        untouched(browser, page)
        browser.click("nav button", "Browse")
        browser.click("#files .entry", "memory/")
        browser.click("#files .entry", "odd/")
        browser.find("#files .control", "U+202E")
        for name in ("<img", "dm.exe", "javascript:", "%2e"):
            browser.click("#files .entry", name)
            browser.find("#pane .note", "submarine")
            untouched(browser, page)
            address = browser.run("return document.querySelector('#pane .editor').href")
            assert address.startswith("vscode://file/")
            assert unquote(address).endswith(":1")
            assert not set(address) & set('<>" \u202e')


@pytest.mark.long
def test_a_million_characters_in_a_line(remembering: Daemon, browser: Browser) -> None:
    """The page shows what it shows of it, says that there is more, and goes on being usable at once."""
    with served(remembering) as (page, opener):
        remembering.write("memory/huge.md", "w" * 1_000_000 + "\n")
        browser.open(opener)
        browser.click("nav button", "Browse")
        browser.click("#files .entry", "memory/")
        browser.click("#files .entry", "huge.md")
        for way, drawn in (
            ("Page", "#pane .note > p + p"),
            ("Lines", "#pane .lines"),
            ("Chunks", "#pane .chunk"),
        ):
            browser.click("#pane button", way)
            browser.find(drawn)
            assert len(browser.texts("#pane .note")[0]) > 20_000
            assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
            untouched(browser, page)
        browser.click("#pane button", "Page")
        browser.find("#pane .about", "longer than is shown")
        browser.click("nav button", "Search")
        browser.type("which database", "#query")
        browser.find("#hits .entry", "PostgreSQL")


def test_an_address_opens_once(remembering: Daemon, browser: Browser) -> None:
    """The second time it says so; the page that was opened goes on, and another tab of it is not open."""
    with served(remembering) as (page, opener):
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


@pytest.mark.long
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
def test_axe_finds_nothing(remembering: Daemon, browser: Browser, tmp_path: Path) -> None:
    """Neither in a list of hits with a note beside, nor in the other views, light and dark."""
    packed = subprocess.run(
        ["npm", "pack", "--silent", AXE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if packed.returncode:
        pytest.skip(f"npm has no {AXE} here")
    subprocess.run(["tar", "xzf", packed.stdout.strip()], cwd=tmp_path, check=True)
    axe = (tmp_path / "package" / "axe.min.js").read_text(encoding="utf-8")
    with served(remembering) as (_, opener):
        browser.open(opener)
        browser.find("#query")
        browser.devtools("Runtime.evaluate", expression=axe)
        for view in VIEWS:
            view(browser)
            for scheme in ("light", "dark"):
                in_colours(browser, scheme)
                found = browser.run(
                    "return axe.run().then((told) => told.violations.map((one) => [one.id, one.nodes.map((node) => node.html)]))"
                )
                assert found == [], (view.__name__, scheme)
