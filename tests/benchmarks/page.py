"""How soon the page of `memd-ctl web` can be used, and what agents notice of it, in a real browser."""

import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tests.benchmarks.figures import Figure, Samples, milliseconds
from tests.benchmarks.idle import spent_by
from tests.benchmarks.notes import natural_questions
from tests.benchmarks.searching import at_rest
from tests.benchmarks.stage import Stage
from tests.client.web.conftest import end, start
from tests.web.browser import CHROMIUM, DRIVER, Browser, browsing

LOADS = 15
ROUNDS, SEARCHES = 6, 40  # of searches with and without the page, by turns
REST_S = 10.0
# From the beginning of the navigation, by the browser's own clock, until the page has drawn its first view.
_SHOWN = "return performance.getEntriesByName('memd-shown')[0]?.startTime ?? null"
_LOADED = "return performance.getEntriesByType('navigation')[0]?.loadEventEnd || null"
# From a click until the list is there.
_LISTED = """
return new Promise((done) => {
  const began = performance.now();
  const look = new MutationObserver(() => {
    if (document.querySelector("#files .where")) { look.disconnect(); done(performance.now() - began); }
  });
  look.observe(document.getElementById("list"), { childList: true, subtree: true });
  [...document.querySelectorAll("nav button")].find((one) => one.textContent === "Browse").click();
});
"""


def measure(stage: Stage) -> Iterator[Figure]:
    """The first view, the list of files, and searches of an agent while the page looks at the state; nothing without Chromium."""
    if CHROMIUM is None or DRIVER is None:
        return
    with tempfile.TemporaryDirectory() as scratch, browsing() as browser:
        page = start(stage.daemon, Path(scratch))
        try:
            address = f"http://127.0.0.1:{page.port}/"
            browser.open(f"{address}#{page.token}")
            shown, listed, plain = Samples(), Samples(), Samples()
            for _ in range(LOADS):
                shown.append(browser.until(lambda: browser.run(_SHOWN)) / 1000)
                listed.append(browser.run(_LISTED) / 1000)
                browser.open(f"{address}style.css")
                plain.append(browser.until(lambda: browser.run(_LOADED)) / 1000)
                browser.open(address)
            note = f"fastest {1000 * min(shown):.0f} ms; baseline: the style sheet as a page, which only the browser delays"
            yield milliseconds("page, first view", shown, plain, note)
            yield milliseconds("page, files of the top", listed)
            yield from _beside(stage, browser, address)
            yield from _duplicates(stage)
        finally:
            end(page)


def _beside(stage: Stage, browser: Browser, address: str) -> Iterator[Figure]:
    """Searches over the socket with the page open on the state, and without it, by turns: wall time, and CPU of the daemon."""
    pid = stage.daemon.process.pid
    asked = iter(natural_questions(2 * ROUNDS * SEARCHES + 20))
    for text in islice(asked, 20):
        stage.client.search(text)
    at_rest(pid)
    took = {True: Samples(), False: Samples()}
    cpu = {True: Samples(), False: Samples()}
    for _ in range(ROUNDS):
        for is_open in (True, False):
            browser.open(address if is_open else "about:blank")
            if is_open:
                browser.click("nav button", "State")
                browser.find("#list th", "chunks")
            before = spent_by(pid).cpu_s
            for text in islice(asked, SEARCHES):
                with took[is_open].timed():
                    stage.client.search(text)
            cpu[is_open].append((spent_by(pid).cpu_s - before) / SEARCHES)
    yield milliseconds("search beside the page", took[True], took[False], "baseline: without the page")
    yield milliseconds("search beside the page, CPU", cpu[True], cpu[False], "of the daemon, a search")
    browser.open(address)
    browser.click("nav button", "State")
    browser.find("#list th", "chunks")
    before = spent_by(pid).cpu_s
    time.sleep(REST_S)
    spent_s = spent_by(pid).cpu_s - before
    yield Figure(
        name="page open on the state, CPU",
        unit="ms",
        memd=1000 * spent_s / REST_S,
        note="of the daemon, a second",
    )


def _duplicates(stage: Stage) -> Iterator[Figure]:
    """The list of notes that say the same, which looks at each text; and searches by turns with it and without."""
    pid = stage.daemon.process.pid
    before = spent_by(pid).cpu_s
    found = stage.client.duplicates()
    took_s = spent_by(pid).cpu_s - before
    yield Figure(
        name="duplicates, CPU", unit="ms", memd=1000 * took_s, note=f"of the daemon; {len(found.pairs)} pairs"
    )
    asked = iter(natural_questions(2_000)[1_000:])
    took = {True: Samples(), False: Samples()}
    for _ in range(ROUNDS // 2):
        with stage.daemon.client(timeout=None) as other:
            listing = threading.Thread(target=other.duplicates)
            listing.start()
            while listing.is_alive() and (text := next(asked, None)) is not None:
                with took[True].timed():
                    stage.client.search(text)
            listing.join()
        for text in islice(asked, SEARCHES):
            with took[False].timed():
                stage.client.search(text)
    yield milliseconds("search during duplicates", took[True], took[False], "baseline: without")
