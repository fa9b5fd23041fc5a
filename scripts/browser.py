#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""browser.py PAGE PICTURE [WIDTH HEIGHT]: a picture of a page's beginning, as headless Chromium shows it.

As a module: a page that can be queried and used, by the DevTools protocol over two pipes, so that neither a driver nor
a library is needed.
"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
           "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
           "--hide-scrollbars", "--remote-debugging-pipe", "about:blank"]


def find_browser():
    """The path of a Chromium, or None."""
    names = ["chromium", "chromium-browser", "google-chrome"]
    return next((path for name in names if (path := shutil.which(name))), None)


class Page:
    """One page in a browser of its own. `errors` has what it logs as an error or throws, `requests` what it requests from the
    network."""

    def __init__(self, path, width=1200, height=900, timeout_s=60):
        self.errors, self.requests = [], []
        self.timeout_s, self.size = timeout_s, {"width": width, "height": height}
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def connect():  # Chromium reads from 3 and writes to 4
            theirs = [os.dup2(end, 60 + i) for i, end in enumerate((to_browser, from_browser))]
            for place, end in enumerate(theirs):
                os.dup2(end, 3 + place)

        self._process = subprocess.Popen(
            [path, f"--user-data-dir={self._profile.name}", f"--window-size={width},{height}", *OPTIONS],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=connect, close_fds=False)
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._answers, self._events, self._next, self._session = b"", {}, set(), 0, None
        try:
            # A page of our own: the initial one may still be loading, or may not be a page at all.
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)
        self._profile.cleanup()

    def _receive(self, deadline):
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self._buffer += piece
        text, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(text)
        if "id" in message:
            self._answers[message["id"]] = message
            return
        method, about = message["method"], message["params"]
        self._events.add(method)
        if method == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(about["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "assert"):
            self.errors.append(json.dumps(about["args"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])

    def call(self, method, **params):
        self._next += 1
        message = {"id": self._next, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self.timeout_s
        while self._next not in self._answers:
            self._receive(deadline)
        answer = self._answers.pop(self._next)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, path):
        """Loads a file; returns the seconds that took."""
        start = time.monotonic()
        self._events.discard("Page.loadEventFired")
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        while "Page.loadEventFired" not in self._events:
            self._receive(start + self.timeout_s)
        return time.monotonic() - start

    def evaluate(self, expression):
        """The value of an expression of JavaScript; if it is a promise, the promise's value."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", expression))
        return answer["result"].get("value")

    def wait_for(self, expression):
        deadline = time.monotonic() + self.timeout_s
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(expression)
            time.sleep(0.02)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def picture(self):
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                                          clip={"x": 0, "y": 0, "scale": 1, **self.size})["data"])


def main():
    if sys.argv[1:] in (["-h"], ["--help"]):
        return print(__doc__.strip())
    if len(sys.argv) not in (3, 5):
        sys.exit(__doc__)
    path = find_browser()
    if path is None:
        sys.exit("browser: no chromium here")
    width, height = (int(word) for word in sys.argv[3:]) if len(sys.argv) == 5 else (1200, 900)
    with Page(path, width, height) as page:
        page.open(sys.argv[1])
        time.sleep(0.5)  # charts are drawn when they come into view
        pathlib.Path(sys.argv[2]).write_bytes(page.picture())


if __name__ == "__main__":
    main()
