"""An API server of Kubernetes as far as Spark asks it: it records all requests, keeps the objects that are made, and
may start the pods of executors as processes of this machine, with what the image's entrypoint does.

It schedules nothing, checks nothing, mounts nothing and isolates nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qs, urlsplit

from harness.install import jvm

ROOT = Path(__file__).resolve().parents[2]
ENTRYPOINT = ROOT / "examples" / "kubernetes" / "entrypoint"
HERE = "127.0.0.1"
COLLECTIONS = {"pods": "PodList", "configmaps": "ConfigMapList", "services": "ServiceList"}
OF_FIELDS = {"status.podIP": HERE, "status.hostIP": HERE}


class Asked(NamedTuple):
    """A request as a Role counts it."""

    verb: str
    group: str
    resource: str


class Api:
    """The objects by resource and name. `nodes`: a folder for the pods of executors, which are then started."""

    def __init__(self, nodes: Path | None = None) -> None:
        self.asked: list[Asked] = []
        self.made: list[dict[str, Any]] = []
        self.kept: dict[tuple[str, str], dict[str, Any]] = {}
        self.pods: dict[str, subprocess.Popen[bytes]] = {}
        self.ended = threading.Event()
        self._nodes = nodes
        self._lock = threading.RLock()

    def create(self, resource: str, given: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            for each in given.get("items") or [given]:
                self.made.append(json.loads(json.dumps(each)))
                each["metadata"] |= {
                    "uid": str(uuid.uuid4()),
                    "resourceVersion": "1",
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                }
                self.kept[resource, each["metadata"]["name"]] = each
                if resource == "pods":
                    each["status"] = {"phase": "Pending"}
                    self._start(each)
        return given

    def listed(self, resource: str, selector: str) -> list[dict[str, Any]]:
        wanted = [each for each in selector.split(",") if "=" in each and "!" not in each]
        with self._lock:
            found = [each for (kind, _), each in self.kept.items() if kind == resource]
            for each in found if resource == "pods" else ():
                self._look_at(each)
            return [
                each
                for each in found
                if all(each["metadata"].get("labels", {}).get(k) == v for k, v in (w.split("=", 1) for w in wanted))
            ]

    def delete(self, resource: str, name: str) -> None:
        with self._lock:
            self.kept.pop((resource, name), None)
            if process := self.pods.pop(name, None):
                process.kill()
                process.wait()

    def _look_at(self, pod: dict[str, Any]) -> None:
        if process := self.pods.get(pod["metadata"]["name"]):
            code = process.poll()
            phase = "Running" if code is None else "Failed" if code else "Succeeded"
            pod["status"] = {"phase": phase, "podIP": HERE}

    def _start(self, pod: Mapping[str, Any]) -> None:
        name = pod["metadata"]["name"]
        if self._nodes is None or pod["metadata"]["labels"].get("spark-role") != "executor":
            return
        (container,) = pod["spec"]["containers"]
        folder = self._nodes / name
        variables = {each["name"]: self._value(each, name) for each in container["env"]}
        for variable in ("SPARK_CONF_DIR", "SPARK_LOCAL_DIRS"):  # its volumes
            (folder / variable).mkdir(parents=True)
            variables[variable] = str(folder / variable)
        for (kind, _), each in self.kept.items():
            for file, text in (each.get("data") or {}).items() if kind == "configmaps" else ():
                (folder / "SPARK_CONF_DIR" / file).write_text(text)
        with (folder / "log").open("wb") as log:
            self.pods[name] = subprocess.Popen(
                [ENTRYPOINT, *container["args"]],
                env={**_of_the_image(), **variables},
                cwd=folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _value(self, variable: Mapping[str, Any], pod: str) -> str:
        if "valueFrom" in variable:
            return OF_FIELDS.get(variable["valueFrom"]["fieldRef"]["fieldPath"], pod)
        return str(variable.get("value", ""))


def _of_the_image() -> dict[str, str]:
    import pyspark

    home = Path(pyspark.__file__).parent
    path = os.pathsep.join((str(Path(jvm.java()).parent), str(Path(sys.executable).parent), os.environ["PATH"]))
    return {"PATH": path, "SPARK_HOME": str(home), "HOME": os.environ["HOME"], "SPARK_LOCAL_IP": HERE}


@contextmanager
def served(nodes: Path | None = None) -> Iterator[tuple[Api, str]]:
    """The server, and its address. With it end the pods that it started."""
    api = Api(nodes)
    server = ThreadingHTTPServer((HERE, 0), type("Of", (_Handler,), {"api": api}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api, f"http://{HERE}:{server.server_port}"
    finally:
        api.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
        for resource, name in list(api.kept):
            api.delete(resource, name)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: Api

    def do_GET(self) -> None:
        at, resource, name = self._place()
        query = {key: values[0] for key, values in parse_qs(at.query).items()}
        if at.path.startswith("/version"):
            return self._answer({"major": "1", "minor": "34", "gitVersion": "v1.34.0"})
        if query.get("watch") == "true":
            self._note("watch", resource)
            if "Upgrade" in self.headers:
                return self._refuse(503)  # the client then asks again, without a web socket
            return self._watched(resource, query.get("labelSelector", ""))
        if name:
            self._note("get", resource)
            found = self.api.kept.get((resource, name))
            return self._answer(found) if found else self._refuse(404)
        self._note("list", resource)
        items = self.api.listed(resource, query.get("labelSelector", ""))
        kind = COLLECTIONS.get(resource, "List")
        return self._answer({"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items})

    def _watched(self, resource: str, selector: str) -> None:
        """One line for each new phase of an object, until the client or the server ends."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        seen: dict[str, str] = {}
        with suppress(OSError):
            while not self.api.ended.wait(0.1):
                now = {each["metadata"]["name"]: each for each in self.api.listed(resource, selector)}
                for name, each in now.items():
                    phase = each.get("status", {}).get("phase", "")
                    if seen.get(name) != phase:
                        kind = "MODIFIED" if name in seen else "ADDED"
                        line = json.dumps({"type": kind, "object": each}).encode() + b"\n"
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                        seen[name] = phase
        self.close_connection = True

    def do_POST(self) -> None:
        _, resource, _ = self._place()
        self._note("create", resource)
        self._answer(self.api.create(resource, self._body()), 201)

    def do_PATCH(self) -> None:
        _, resource, name = self._place()
        self._note("patch", resource)
        if found := self.api.kept.get((resource, name)):
            return self._answer(found)
        body = self._body()  # a server-side apply
        return self._answer(self.api.create(resource, body), 201) if isinstance(body, dict) else self._refuse(404)

    def do_DELETE(self) -> None:
        at, resource, name = self._place()
        self._note("delete" if name else "deletecollection", resource)
        self._body()
        selector = parse_qs(at.query).get("labelSelector", [""])[0]
        names = [name] if name else [each["metadata"]["name"] for each in self.api.listed(resource, selector)]
        for each in names:
            self.api.delete(resource, each)
        self._answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def log_message(self, *_: object) -> None:
        pass

    def _place(self) -> tuple[SplitResult, str, str]:
        """What is asked for: /api/v1/namespaces/NAMESPACE/RESOURCE/NAME, or /apis/GROUP/VERSION/namespaces/..."""
        at = urlsplit(self.path)
        parts = at.path.strip("/").split("/")
        self._group = parts[1] if parts[0] == "apis" else ""
        after = parts[parts.index("namespaces") + 2 :] if "namespaces" in parts else []
        resource, name, *_ = [*after, "", ""]
        return at, resource, name

    def _note(self, verb: str, resource: str) -> None:
        self.api.asked.append(Asked(verb, self._group, resource))

    def _body(self) -> Any:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return json.loads(text) if text else {}

    def _answer(self, told: object, code: int = 200) -> None:
        text = json.dumps(told).encode()
        with suppress(ConnectionError):
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    def _refuse(self, code: int) -> None:
        self._answer({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}, code)
