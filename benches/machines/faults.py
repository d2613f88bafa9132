"""A proxy on the loopback that spoils every n-th request: an answer 503, a cut connection, or an answer that never arrives
though the request was carried out. Arguments: its port, the port behind it, n."""

import http.client
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

port, behind, every = (int(word) for word in sys.argv[1:4])
lock = threading.Lock()
count = spoiled = 0


class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def carry(self):
        global count, spoiled
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with lock:
            count += 1
            fault = count // every % 3 if count % every == 0 else None
            spoiled += fault is not None
            if fault is not None:
                print(f"request {count}: fault {fault}, {self.command} {self.path}", file=sys.stderr, flush=True)
        if fault == 0:
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if fault == 1:
            self.close_connection = True
            self.connection.close()
            return
        server = http.client.HTTPConnection("127.0.0.1", behind)
        server.request(self.command, self.path, body, dict(self.headers))
        answer = server.getresponse()
        data = answer.read()
        if fault == 2:
            self.close_connection = True
            self.connection.close()
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = carry

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", port), Proxy).serve_forever()
