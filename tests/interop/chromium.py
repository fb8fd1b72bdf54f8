# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium without a library: its protocol for developers over two pipes, messages of JSON that end in a zero byte."""

import base64
import json
import os
import shutil
import subprocess


def find():
    """The browser's path; None: there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


class Browser:
    """One page of a browser. Errors of its scripts, and whatever it wanted from a network, gather in `errors`."""

    def __init__(self, folder):
        to_browser, from_us = os.pipe()
        to_us, from_browser = os.pipe()
        os.set_inheritable(to_browser, True)
        os.set_inheritable(from_browser, True)
        command = [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"]

        def take_pipes():  # the browser reads from 3 and writes to 4
            one, two = os.dup(to_browser), os.dup(from_browser)
            os.dup2(one, 3)
            os.dup2(two, 4)

        self.process = subprocess.Popen(command, preexec_fn=take_pipes, close_fds=False, stderr=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.to, self.back = os.fdopen(from_us, "wb"), os.fdopen(to_us, "rb")
        self.n, self.rest, self.session, self.errors, self.events = 0, b"", None, [], []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def read(self):
        while b"\0" not in self.rest:
            part = os.read(self.back.fileno(), 1 << 16)
            if not part:
                raise EOFError("the browser ended")
            self.rest += part
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def take_event(self, message):
        params = message.get("params", {})
        self.events.append(message["method"])
        if message["method"] == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif message["method"] == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif message["method"] == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "data:", "about:", "blob:")):
            self.errors.append("it asked for " + params["request"]["url"])

    def call(self, method, **params):
        self.n += 1
        message = {"id": self.n, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.to.write(json.dumps(message).encode() + b"\0")
        self.to.flush()
        while True:
            answer = self.read()
            if "method" in answer:
                self.take_event(answer)
            elif answer.get("id") == self.n:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path, width=1000, height=900, dark=False):
        self.errors, self.events = [], []
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=f"file://{path}")
        while "Page.loadEventFired" not in self.events:
            self.take_event(self.read())

    def ask(self, expression):
        """The value of an expression of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", "a script failed"))
        return answer["result"].get("value")

    def press(self, key, text=None):
        code = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "Tab": 9}.get(key, 0)
        text = text if text is not None else "\r" if key == "Enter" else key if len(key) == 1 else ""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def picture(self, path, whole=True):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as out:
            out.write(base64.b64decode(data))

    def close(self):
        try:
            self.call("Browser.close")
        except (EOFError, OSError, RuntimeError):
            self.process.terminate()
        self.process.wait(20)
