"""A TCP proxy that stands between two hosts and spoils the connection: delays, resets, swallows.

    proxy.py LISTEN_NETNS CONNECT_NETNS ADDRESS MODE AFTER_BYTES PORT...

It listens in one network namespace at ADDRESS (which belongs to the other host) and connects to the same address in the
other. MODE: delay (each piece waits 30 ms), reset (both sides get a reset after so many bytes), swallow (after so many
bytes nothing goes on, and nobody is told).
"""
from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys
import threading
import time

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def enter(space: str) -> None:
    fd = os.open(f"/run/netns/{space}", os.O_RDONLY)
    if LIBC.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"setns {space}")
    os.close(fd)


class Wire:
    """What has gone through, both ways together."""

    def __init__(self, mode: str, after: int):
        self.mode, self.after, self.bytes, self.lock, self.ends = mode, after, 0, threading.Lock(), []

    def pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                with self.lock:
                    self.bytes += len(data)
                    over = self.bytes > self.after
                if self.mode == "delay":
                    time.sleep(0.03)
                elif over and self.mode == "reset":
                    for end in list(self.ends):
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        end.close()
                    return
                elif over and self.mode == "swallow":
                    continue
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def main() -> None:
    listen, connect, address, mode, after, *ports = sys.argv[1:]
    wire = Wire(mode, int(after))
    enter(listen)
    listeners = []
    for port in ports:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, int(port)))
        listener.listen(64)
        listeners.append((listener, int(port)))

    def serve(listener: socket.socket, port: int) -> None:
        enter(connect)  # of this thread alone
        while True:
            near, _ = listener.accept()
            try:
                far = socket.create_connection((address, port), timeout=5)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            wire.ends += [near, far]
            for pair in ((near, far), (far, near)):
                threading.Thread(target=wire.pump, args=pair, daemon=True).start()

    for one in listeners:
        threading.Thread(target=serve, args=one, daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
