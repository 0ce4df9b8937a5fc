"""Connects to HOST PORT as nobody should: says nothing, talks nonsense, HTTP or TLS without a certificate, in floods.

    stranger.py HOST PORT

Prints `done` when it has tried everything, and holds silent connections open until it is ended.
"""

import os
import socket
import ssl
import sys
import time

NONSENSE = [
    b"GET / HTTP/1.1\r\nHost: driver\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    b"\xff" * 65536,
    bytes(65536),
    os.urandom(65536),
    b"SSH-2.0-nobody\r\n",
]


SECONDS = 5.0  # for all of it


def connect(host, port):
    return socket.create_connection((host, port), 1.0)


def main(host, port):
    end = time.monotonic() + SECONDS
    held = []
    for words in NONSENSE * 50:
        if time.monotonic() > end:
            break
        try:
            with connect(host, port) as stranger:
                stranger.sendall(words)
        except OSError:
            pass  # it was hung up on, which is its right
    while len(held) < 300 and time.monotonic() < end:
        try:
            held.append(connect(host, port))
        except OSError:
            pass
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with context.wrap_socket(connect(host, port)) as stranger:
            stranger.sendall(b"x")
            stranger.recv(1)
    except OSError:
        pass
    print("done", len(held), flush=True)
    sys.stdin.read()


main(sys.argv[1], int(sys.argv[2]))
