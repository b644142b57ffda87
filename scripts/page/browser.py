"""Drives Chromium over its debugging pipe. Messages are JSON, each ended by a zero byte."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")
PATIENCE_S = 60


class NoBrowser(Exception):
    """Raised if Chromium is not installed and cannot be installed. The message says why."""


class BrowserError(Exception):
    """Raised if Chromium rejects a command, or does not answer."""


def find_browser():
    """Returns the path of Chromium. Installs Debian's package if Chromium is missing and the user is root."""
    found = installed()
    if found:
        return found
    if not shutil.which("apt-get"):
        raise NoBrowser("no Chromium here, and this is not a Debian system")
    if os.geteuid() != 0:
        raise NoBrowser("no Chromium here; as root, run: apt-get install chromium")
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "-o",
               "Dpkg::Use-Pty=0", "chromium", "fonts-dejavu-core"]
    for command in (install, ["apt-get", "update", "-qq"], install):
        done = subprocess.run(command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                              capture_output=True, text=True)
        if installed():
            return installed()
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    raise NoBrowser(f"Chromium cannot be installed: {last}")


def installed():
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A headless Chromium with one page. It runs until the `with` block ends."""

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(prefix="rematch_page_")
        to_browser, self.outgoing = os.pipe()
        self.incoming, from_browser = os.pipe()
        # With --remote-debugging-pipe, Chromium reads commands from descriptor 3 and writes answers to 4.
        command = ('exec 3<&%d 4>&%d; exec "$0" "$@"' % (to_browser, from_browser))
        self.process = subprocess.Popen(
            ["bash", "-c", command, program, "--headless", "--remote-debugging-pipe",
             "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-background-networking",
             f"--user-data-dir={self.folder.name}", "about:blank"],
            pass_fds=(to_browser, from_browser), stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.last_id = 0
        self.session = None
        self.events = []

    def __enter__(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.outgoing)
        os.close(self.incoming)
        self.folder.cleanup()

    def call(self, method, **parameters):
        """Sends a command and returns its result. Stores events that arrive before the result."""
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.outgoing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error'].get('message')}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        """Waits for the event. Keeps the event and all earlier events in `events`."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.receive())

    def evaluate(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"script: {result['exceptionDetails'].get('exception')}")
        return result["result"].get("value")

    def receive(self):
        deadline = time.monotonic() + PATIENCE_S
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.incoming], [], [], deadline - time.monotonic())
            chunk = os.read(self.incoming, 1 << 16) if ready else b""
            if not chunk:
                raise BrowserError("Chromium does not answer" if not ready else "Chromium ended")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)
