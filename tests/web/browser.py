"""A real browser, headless, driven over the WebDriver protocol as its driver speaks it."""

import base64
import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import httpx

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
_ARGUMENTS = (
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--force-color-profile=srgb",
    ),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--force-prefers-reduced-motion",
        "--window-size=1280,900",
    ),
)
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element, by the standard
ENTER, TAB, DOWN = "\ue007", "\ue004", "\ue015"
START_S = 60.0
WAIT_S = 20.0


class Browser:
    """One window."""

    def __init__(self, driver: httpx.Client, session: str) -> None:
        self._driver = driver
        self._session = f"/session/{session}"

    def _post(self, path: str, **body: Any) -> Any:
        return _value(self._driver.post(f"{self._session}{path}", json=body))

    @contextlib.contextmanager
    def tab(self) -> Iterator[Self]:
        """A new tab for the block; what it is told to look like ends with it."""
        ours = _value(self._driver.get(f"{self._session}/window"))
        self._post("/window", handle=self._post("/window/new", type="tab")["handle"])
        self.devtools("Page.bringToFront")  # else nothing in it has the focus
        self.complaints()  # those of the tab before
        try:
            yield self
        finally:
            self._driver.delete(f"{self._session}/window")
            self._post("/window", handle=ours)

    def open(self, address: str) -> None:
        """Go to an address, and wait until it is loaded."""
        self._post("/url", url=address)

    def run(self, script: str, *arguments: Any) -> Any:
        """What the body of a function returns in the page; a promise is waited for."""
        return self._post("/execute/sync", script=script, args=list(arguments))

    def find(self, css: str, text: str = "") -> dict[str, str]:
        """The first visible element with this selector that has a text; waits until it is there."""
        script = (
            "return [...document.querySelectorAll(arguments[0])].find((one) => one.checkVisibility()"
            " && one.textContent.includes(arguments[1])) ?? null"
        )
        found: dict[str, str] = self.until(lambda: self.run(script, css, text), f"{css} {text!r}")
        return found

    def click(self, css: str, text: str = "") -> None:
        """Click on what find finds."""
        self._post(f"/element/{self.find(css, text)[_ELEMENT]}/click")

    def type(self, keys: str, css: str = ":focus") -> None:
        """Press keys in an element."""
        self._post(f"/element/{self.find(css)[_ELEMENT]}/value", text=keys)

    def keys(self, keys: str) -> None:
        """Press keys, whatever has the focus."""
        pressed = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._post("/actions", actions=[{"type": "key", "id": "keyboard", "actions": pressed}])

    def texts(self, css: str) -> list[str]:
        """The texts of all elements with this selector."""
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", css
        )
        return found

    def until(self, condition: Any, what: str = "it") -> Any:
        """What a condition gives once that is something."""
        ends = time.monotonic() + WAIT_S
        while not (value := condition()):
            assert time.monotonic() < ends, f"no {what}: {self.run('return document.body.innerText')[:2000]}"
            time.sleep(0.05)
        return value

    def devtools(self, command: str, **parameters: Any) -> Any:
        """A command of Chromium's own protocol."""
        return self._post("/goog/cdp/execute", cmd=command, params=parameters)

    def complaints(self) -> list[str]:
        """What the console has had since it was asked last."""
        return [entry["message"] for entry in self._post("/se/log", type="browser")]

    def picture(self, file: Path) -> None:
        """Write what the window shows as a PNG."""
        shot = _value(self._driver.get(f"{self._session}/screenshot"))
        file.write_bytes(base64.b64decode(shot))


def _value(answer: httpx.Response) -> Any:
    value = answer.json()["value"]
    assert not (isinstance(value, dict) and "stacktrace" in value), value["message"]
    return value


@contextlib.contextmanager
def browsing(*arguments: str, language: str = "en-US") -> Iterator[Browser]:
    """A browser with a profile of its own, for the block.

    Args:
        arguments: Of its command line, beside those of each.
        language: That its person reads.
    """
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        _driving() as driver,
    ):
        options = {
            "args": [*_ARGUMENTS, f"--user-data-dir={profile}", f"--lang={language}", *arguments],
            "prefs": {"intl.accept_languages": language},
            "binary": CHROMIUM,
        }
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        started = _value(driver.post("/session", json={"capabilities": {"alwaysMatch": wanted}}))
        try:
            yield Browser(driver, started["sessionId"])
        finally:
            driver.delete(f"/session/{started['sessionId']}")


@contextlib.contextmanager
def _driving() -> Iterator[httpx.Client]:
    assert DRIVER is not None
    command: Sequence[str] = [DRIVER, "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if "started successfully on port" in line)
            port = line.rsplit(" ", 1)[1].strip().rstrip(".")
            with httpx.Client(
                base_url=f"http://127.0.0.1:{port}", timeout=START_S, trust_env=False
            ) as client:
                yield client
        finally:
            process.terminate()
