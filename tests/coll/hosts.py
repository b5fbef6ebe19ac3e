"""Hosts for tests: network namespaces joined by a bridge, each with a machine of its own. Needs root and `ip`.

    with Hosts(4) as hosts:
        hosts[0].start([...], env)      # a process on h1
        hosts[0].sent()                 # bytes that h1 has put on its wire

A host is a machine name and an address: processes of different hosts share neither memory nor loopback.
"""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid


def possible() -> str:
    """Why there can be no hosts; empty when there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "no program ip (package iproute2)"
    probe = "probe" + uuid.uuid4().hex[:6]
    if subprocess.run(["ip", "netns", "add", probe], capture_output=True).returncode != 0:
        return "this kernel or container makes no network namespaces"
    subprocess.run(["ip", "netns", "del", probe], capture_output=True)
    return ""


def ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
    return done.stdout


class Host:
    def __init__(self, tag: str, number: int, address: str):
        self.space, self.machine, self.address, self.number = f"{tag}h{number}", f"{tag}h{number}", address, number
        self.children: list[subprocess.Popen] = []

    def command(self, words: list[str]) -> list[str]:
        return ["ip", "netns", "exec", self.space, *words]

    def start(self, words: list[str], env: dict, **more) -> subprocess.Popen:
        child = subprocess.Popen(self.command(words), env={**os.environ, "ANYNPU_MACHINE": self.machine, **env}, **more)
        self.children.append(child)
        return child

    def counters(self, device: str) -> tuple[int, int]:
        stats = json.loads(ip("-n", self.space, "-s", "-j", "link", "show", device))[0]["stats64"]
        return stats["tx"]["bytes"], stats["rx"]["bytes"]

    def sent(self) -> int:
        return self.counters("eth0")[0]

    def looped(self) -> int:
        return self.counters("lo")[0]


class Hosts:
    """`count` hosts on one network: 10.77.0.1, 10.77.0.2, …"""

    def __init__(self, count: int):
        self.tag = "n" + uuid.uuid4().hex[:5]
        self.hosts = [Host(self.tag, i + 1, f"10.77.0.{i + 1}") for i in range(count)]
        self.bridge = f"{self.tag}sw"

    def __getitem__(self, i: int) -> Host:
        return self.hosts[i]

    def __iter__(self):
        return iter(self.hosts)

    def __enter__(self) -> "Hosts":
        # The bridge has a namespace of its own too, so that nothing of the test touches the real network.
        ip("netns", "add", self.bridge)
        ip("-n", self.bridge, "link", "add", "sw", "type", "bridge")
        ip("-n", self.bridge, "link", "set", "sw", "up")
        for host in self.hosts:
            ip("netns", "add", host.space)
            port = f"p{host.number}"
            ip("-n", host.space, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", self.bridge)
            ip("-n", self.bridge, "link", "set", port, "master", "sw", "up")
            ip("-n", host.space, "addr", "add", f"{host.address}/24", "dev", "eth0")
            ip("-n", host.space, "link", "set", "eth0", "up")
            ip("-n", host.space, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        for host in self.hosts:
            for child in host.children:
                if child.poll() is None:
                    child.kill()
                child.wait()
        for space in [*(h.space for h in self.hosts), self.bridge]:
            subprocess.run(["ip", "netns", "del", space], capture_output=True)
