"""A proxy of the loopback that fails: every few requests it answers 500 or 503, cuts the connection, loses an answer, or is late.

faults.py PORT TARGET_PORT EVERY: listens on PORT, hands requests to TARGET_PORT, and fails one in EVERY, each time in another
way. What it did is counted on standard error when it is asked to stop.
"""

import http.client
import itertools
import signal
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAULTS = ["500", "503", "cut before", "answer lost", "late"]
port, target, every = (int(word) for word in sys.argv[1:4])
numbers = itertools.count(1)
did: Counter = Counter()
lock = threading.Lock()


class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with lock:
            number = next(numbers)
            fault = FAULTS[number // every % len(FAULTS)] if number % every == 0 else "none"
            did[fault] += 1
        if fault in ("500", "503"):
            code = {"500": "InternalError", "503": "SlowDown"}[fault]
            self.say(int(fault), [], f"<Error><Code>{code}</Code><Message>injected</Message></Error>".encode())
            return
        if fault == "cut before":
            self.close_connection = True
            return
        server = http.client.HTTPConnection("127.0.0.1", target, timeout=60)
        server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            server.putheader(name, value)
        server.endheaders(body)
        came = server.getresponse()
        content = came.read()
        if fault == "answer lost":
            self.close_connection = True
            return
        if fault == "late":
            time.sleep(3)
        self.say(came.status, came.getheaders(), content)
        server.close()

    def say(self, status: int, headers: list, content: bytes) -> None:
        self.send_response_only(status)
        passed = [(name, value) for name, value in headers if name.lower() not in ("connection", "transfer-encoding")]
        for name, value in passed:
            self.send_header(name, value)
        if not any(name.lower() == "content-length" for name, _ in passed):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            try:
                self.wfile.write(content)
            except ConnectionError:
                # Who asked was killed.
                self.close_connection = True

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer


def stop(*_: object) -> None:
    print(", ".join(f"{name}: {count}" for name, count in sorted(did.items())), file=sys.stderr, flush=True)
    raise SystemExit(0)


signal.signal(signal.SIGTERM, stop)
ThreadingHTTPServer(("127.0.0.1", port), Proxy).serve_forever()
