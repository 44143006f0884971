"""`streamgauge docs`: the documents as a site, built by mkdocs and served on this machine.

The packages that build it are pinned in requirements/docs.lock. They go into an environment of their own in the user's
cache on first use. No run needs them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli.common_flags import Json, answer
from harness.engines.environments import python_with
from harness.install.installer import clean_environment
from harness.install.origin import IS_CHECKOUT, ROOT
from harness.model import HarnessError, UsageError
from harness.terminal import console
from harness.terminal.command_end import cache_folder, short_path
from harness.util.suggest import why
from harness.util.texts import many
from reports import project_url

LOOPBACK = "127.0.0.1"
PINS = ROOT / "requirements" / "docs.lock"
CONFIG = ROOT / "mkdocs.yml"
MARKDOWN = ROOT / "docs" / "README.md"
MARK = ".streamgauge-docs"  # in a folder that --build has filled, and may empty
LEVEL = r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) *-  "
FAULT = re.compile(rf"^(?:WARNING|ERROR|CRITICAL) *-  (.*(?:\n(?!{LEVEL}|Aborted).+)*)", re.MULTILINE)


def docs(
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="PORT", min=1, max=65535, help="Serve on this port. [default: a free one]"),
    ] = None,
    build: Annotated[
        Path | None,
        typer.Option("--build", metavar="DIR", help="Only build the site into this folder; a broken link is an error."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Build the documents as a site with a search, and serve it on this machine."""
    _refuse_without_documents()
    if build is None:
        _serve(port, as_json)
        return
    if port is not None:
        raise UsageError("--port is for serving the site, and --build DIR only builds it: give one of them.")
    _build_into(build, as_json)


def _refuse_without_documents() -> None:
    if not IS_CHECKOUT:
        place = project_url.address() or "the project's repository"
        raise UsageError(
            "The documents are in the folder docs of a checkout, and this program was installed from a wheel, which "
            f"does not contain them. Read them at {place}/tree/main/docs, or run this command in a checkout."
        )


# ---------------------------------------------------------------- Building


def _build_into(target: Path, as_json: bool) -> None:
    """Build the site, and only then replace an earlier one in the target folder."""
    _refuse_other_content(target)
    with tempfile.TemporaryDirectory(prefix="streamgauge-docs-") as place:
        site = Path(place) / "site"  # made with the usual rights, unlike the folder around it
        faults = build_site(CONFIG, site, strict=True)
        for fault in faults:
            console.say(fault)
        if faults:
            raise HarnessError(
                f"The documents have {many(len(faults), 'fault')}, which {'is' if len(faults) == 1 else 'are'} listed "
                f"above, so no site was written to {short_path(target)}."
            )
        pages = sum(path.name != "404.html" for path in site.rglob("*.html"))
        try:
            _replace(target, site)
        except OSError as error:
            raise UsageError(f"The site can't be written to {target}: {why(error)}. Name another folder.") from error
    text = f"{many(pages, 'page')} in {short_path(target)}, beginning with index.html"
    answer(as_json, {"command": "docs", "site": str(target), "pages": pages}, text)


def _refuse_other_content(target: Path) -> None:
    """Refuse a folder that holds anything but a site, because its content would be deleted."""
    try:
        is_other = target.exists() and not (target / MARK).is_file() and any(target.iterdir())
    except OSError as error:
        raise UsageError(f"--build {target}: {why(error)}. Name a new or an empty folder.") from error
    if is_other:
        raise UsageError(
            f"{target} is not empty, and it holds no site that --build made. Name a new or an empty folder: an earlier "
            "site in it is replaced."
        )


def _replace(target: Path, site: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for path in target.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    (target / MARK).touch()
    shutil.copytree(site, target, dirs_exist_ok=True)


def build_site(config: Path, folder: Path, *, strict: bool) -> list[str]:
    """Build the site of a configuration of mkdocs into a folder. Return what is wrong with the documents; without
    `strict` the site is built all the same.
    """
    command = [str(_python()), "-I", "-m", "mkdocs", "--no-color", "build", "--config-file", str(config)]
    command += ["--site-dir", str(folder), *(["--strict"] if strict else [])]
    # The theme advertises its successor.
    environment = clean_environment(os.environ) | {"NO_MKDOCS_2_WARNING": "true"}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    faults = FAULT.findall(said)
    if done.returncode and not (strict and faults):
        last = (said.strip().splitlines() or ["it printed nothing"])[-1]
        raise HarnessError(f"mkdocs could not build the site: {last}. {_read_the_markdown()}")
    return [fault.strip() for fault in faults]


def _python() -> Path:
    """Return the Python with mkdocs. The first use installs its packages."""
    digest = hashlib.sha256(PINS.read_bytes() + sys.version.encode()).hexdigest()[:16]
    try:
        return python_with("docs", [PINS], cache_folder() / "docs" / digest, console.say)
    except HarnessError as error:
        raise HarnessError(f"{str(error).rstrip('.')}. {_read_the_markdown()}") from error


def _read_the_markdown() -> str:
    return f"The documents can also be read as Markdown: {short_path(MARKDOWN)} is the first page."


# ---------------------------------------------------------------- Serving


class Server(ThreadingHTTPServer):
    """A server that does not report browsers that hang up."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


class Quiet(SimpleHTTPRequestHandler):
    """A handler without a line for each request."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _serve(port: int | None, as_json: bool) -> None:
    """Take the port first, since building takes seconds."""
    if as_json:
        raise UsageError("--json needs --build DIR here: a server has no result before it is stopped.")
    with (
        tempfile.TemporaryDirectory(prefix="streamgauge-docs-") as place,
        _listening(port or 0, Path(place)) as server,
    ):
        for fault in build_site(CONFIG, Path(place), strict=False):
            console.say(fault)
        print(f"The documents are at http://{LOOPBACK}:{server.server_port}/ until Ctrl-C.", flush=True)
        server.serve_forever()


def _listening(port: int, folder: Path) -> Server:
    try:
        return Server((LOOPBACK, port), partial(Quiet, directory=str(folder)))
    except OSError as error:
        raise UsageError(
            f"Port {port} of {LOOPBACK} can't be served on: {why(error)}. Leave out --port to take a free one. "
            f"{_read_the_markdown()}"
        ) from error
