"""The page of `anynpu web` in a real headless Chromium, driven through its pipe."""
from __future__ import annotations

import base64
import json
import os
import pathlib
import subprocess
import textwrap
import time

import pytest
from live import ROOT, free_port, need, program, until, wheels_python

LOAD = textwrap.dedent("""
    import os, sys, torch, torch_npu
    x = torch.randn(256, 256).npu()
    big = torch.empty(300 << 20, dtype=torch.uint8, device="npu:0")
    while not os.path.exists(sys.argv[1]):
        x = torch.softmax(x @ x, dim=-1)
        torch.npu.synchronize()
""")


class Browser:
    """Chromium with its debugging protocol on two pipes: messages of JSON that end with a zero byte."""

    def __init__(self, folder: pathlib.Path):
        to_read, self._to = os.pipe()
        self._from, from_write = os.pipe()
        # The browser wants descriptors 3 and 4.
        command = f'exec 3<&{to_read} 4>&{from_write}; exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", command, "sh", need("chromium"), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             f"--user-data-dir={folder}/chromium", "--remote-debugging-pipe", "--window-size=1280,1000", "about:blank"],
            pass_fds=(to_read, from_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self._rest, self._id, self._session = b"", 0, None
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def call(self, method: str, **params) -> dict:
        self._id += 1
        message = {"id": self._id, "method": method, "params": params} | ({"sessionId": self._session} if self._session else {})
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                part = os.read(self._from, 1 << 20)
                assert part, "the browser has ended"
                self._rest += part
            text, _, self._rest = self._rest.partition(b"\0")
            answer = json.loads(text)
            if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.errors.append(json.dumps(answer["params"])[:500])
            if answer.get("id") == self._id:
                assert "error" not in answer, answer
                return answer["result"]

    def value(self, expression: str):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def picture(self, path: pathlib.Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        try:
            self.call("Browser.close")
        except (AssertionError, OSError):
            pass
        self.process.wait(120)


@pytest.fixture
def browser(tmp_path):
    b = Browser(tmp_path)
    yield b
    b.close()


def test_the_page_is_live_under_load_and_after(machine, browser, tmp_path):
    port = free_port()
    machine.start("web", "--listen", f"127.0.0.1:{port}", name="web")
    until(lambda: "http://" in machine.log("web"), say=lambda: machine.log("web"))
    browser.call("Page.navigate", url=f"http://127.0.0.1:{port}/")
    until(lambda: (browser.value("+(document.body.dataset.updates || 0)") or 0) >= 2, 180, 0.3, lambda: str(browser.errors))
    assert browser.value("document.querySelectorAll('.card').length") == machine.cards
    assert browser.value("document.getElementById('state').textContent") == "live"
    assert "no processes" in browser.value("document.getElementById('processes').textContent")

    (tmp_path / "load.py").write_text(LOAD)
    load = machine.start("run", "-q", "--", wheels_python(), str(tmp_path / "load.py"), str(tmp_path / "stop"), name="load")
    until(lambda: "300 MB" in browser.value("document.getElementById('processes').textContent") or "MB" in browser.value("document.getElementById('processes').textContent")
          and "MatMul" in browser.value("document.getElementById('operators').textContent"), 240, 0.5, lambda: machine.log("load")[-1000:])
    until(lambda: "MatMul" in browser.value("document.getElementById('operators').textContent"), 180, 0.3)
    # The figure moves: the first card is at work, the second is not.
    use = "document.querySelector('.card[data-card=\"%d\"] .row span:last-child').textContent"
    until(lambda: int(browser.value(use % 0).split()[0]) > 20, 180, 0.3)
    assert int(browser.value(use % 1).split()[0]) == 0
    updates = browser.value("+document.body.dataset.updates")
    until(lambda: browser.value("+document.body.dataset.updates") >= updates + 3, 180, 0.2)
    time.sleep(1)
    browser.picture(tmp_path / "load.png")
    assert (tmp_path / "load.png").stat().st_size > 20_000
    if os.environ.get("ANYNPU_SCREENSHOTS"):
        browser.picture(pathlib.Path(os.environ["ANYNPU_SCREENSHOTS"]) / "web-load.png")
    (tmp_path / "stop").touch()
    load.wait(240)
    until(lambda: "no processes" in browser.value("document.getElementById('processes').textContent"), 180, 0.3)
    until(lambda: int(browser.value(use % 0).split()[0]) == 0, 180, 0.3)
    assert browser.errors == []


def test_the_page_says_when_its_server_has_gone_and_comes_back(machine, browser):
    port = free_port()
    server = machine.start("web", "--listen", f"127.0.0.1:{port}", name="web")
    until(lambda: "http://" in machine.log("web"))
    browser.call("Page.navigate", url=f"http://127.0.0.1:{port}/")
    until(lambda: (browser.value("+(document.body.dataset.updates || 0)") or 0) >= 1, 180, 0.3)
    machine.end(server)
    until(lambda: "no connection" in browser.value("document.getElementById('state').textContent"), 180, 0.3)
    machine.start("web", "--listen", f"127.0.0.1:{port}", name="again")
    until(lambda: browser.value("document.getElementById('state').textContent") == "live", 180, 0.3)


def test_top_draws_in_a_terminal_and_gives_it_back(machine):
    """A real pseudo terminal: it draws, follows a new size, ends with q and leaves the screen as it was."""
    import fcntl
    import pty
    import struct
    import termios
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
    before = termios.tcgetattr(slave)
    top = subprocess.Popen([program(), "top", "-d", "0.2"], env=machine.env, stdin=slave, stdout=slave, stderr=slave)
    text = b""
    os.set_blocking(master, False)

    def seen(word: bytes) -> bool:
        nonlocal text
        try:
            text += os.read(master, 1 << 16)
        except BlockingIOError:
            pass
        return word in text

    until(lambda: seen(b"910B4") and seen(b"AI core"), 180, 0.2, lambda: str(text[-500:]))
    os.write(master, b"q")
    assert until(lambda: (seen(b"\x1b[?1049l"), top.poll())[1] is not None, 180, 0.1)
    assert top.returncode == 0 and seen(b"\x1b[?1049l")
    assert termios.tcgetattr(slave)[:4] == before[:4]
    once = machine.run("top", "--once")
    assert "910B4" in once.stdout and "\x1b" not in once.stdout


def test_no_asset_comes_from_elsewhere():
    page = (ROOT / "tools/monitor/web/page.html").read_text()
    outside = [word for word in ("http:", "https:", "//cdn", "@import", "src=\"") if word in page.replace("http://www.w3.org/2000/svg", "")]
    assert outside == []
