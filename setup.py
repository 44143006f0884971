"""What pyproject.toml can't say: where the wheel holds what, and that building it leaves nothing in the checkout.

A wheel has one top-level package, `streamgauge`, so that it can be installed beside anything: the modules of `client`,
which import the standard library only, and the program's own folders below `streamgauge/program`, which nobody imports
from there. The first use makes an environment for the program in the user's cache, with the very versions of
requirements/run.lock, checked by their hashes.
"""

import atexit
import shutil
import tempfile

from setuptools import find_namespace_packages, setup

PROGRAM = ("harness", "workloads", "generators", "reports")
# What the program reads of a checkout's other folders.
BESIDE = {"requirements": ["run.lock", "run.in"], "docs.reference": ["commands.md"]}

scratch = tempfile.mkdtemp(prefix="streamgauge-build-")
atexit.register(shutil.rmtree, scratch, ignore_errors=True)
folders = [*find_namespace_packages(include=[f"{name}*" for name in PROGRAM]), *BESIDE]
setup(
    packages=["streamgauge", *(f"streamgauge.program.{folder}" for folder in folders)],
    package_dir={
        "streamgauge": "client",
        **{f"streamgauge.program.{folder}": folder.replace(".", "/") for folder in folders},
    },
    package_data={
        "": [
            "*.toml",
            "*.xml",
            "*.sha256",
            "*.j2",
            "*.java",
            "*.lock",
            "*.jsonl",
            "*.html",
            "*.css",
            "*.js",
            "*.LICENSE",
        ],
        "streamgauge": ["py.typed"],
        **{f"streamgauge.program.{folder}": names for folder, names in BESIDE.items()},
    },
    exclude_package_data={"streamgauge.program.requirements": ["test.lock", "docs.lock", "notebook.lock"]},
    options={"build": {"build_base": scratch}, "egg_info": {"egg_base": scratch}},
)
