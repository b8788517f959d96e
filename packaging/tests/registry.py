"""A registry of npm packages on this machine, for one test."""

import base64
import hashlib
import io
import json
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote


def manifest_of(archive):
    """The package.json of a package."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return json.load(tar.extractfile("package/package.json"))


class Registry:
    """Serves packages until it is closed, and remembers whose programs were fetched."""

    def __init__(self, archives):
        self.archives = {}
        self.fetched = set()
        for archive in archives:
            self.archives[manifest_of(archive)["name"]] = archive
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                path = unquote(self.path).strip("/")
                if path in registry.archives:
                    self.answer(200, registry.document(path))
                elif path.removesuffix(".tgz") in registry.archives:
                    name = path.removesuffix(".tgz")
                    registry.fetched.add(name)
                    self.answer(200, registry.archives[name])
                else:
                    self.answer(404, b"{}")

            def answer(self, status, body):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def document(self, name):
        """What a registry says about a package, which has one version here."""
        archive = self.archives[name]
        manifest = manifest_of(archive)
        digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
        manifest["dist"] = {
            "tarball": f"{self.url}/{name}.tgz",
            "integrity": f"sha512-{digest}",
        }
        version = manifest["version"]
        document = {
            "name": name,
            "dist-tags": {"latest": version},
            "versions": {version: manifest},
        }
        return json.dumps(document).encode()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
