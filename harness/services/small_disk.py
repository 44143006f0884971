"""A separate small disk in memory for one folder, which a fault can fill without harm to others.

It is a tmpfs, so it needs Linux and the right to mount. Deleting the folder unmounts it first; see
`harness.services.owners`.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from harness.model import HarnessError

SIZE_MB = 64
BALLAST = "ballast"
CHUNKS = (1 << 20, 1 << 12)


class SmallDisk:
    """A mounted folder from `mount` to `unmount`."""

    def __init__(self, folder: Path, size_mb: int = SIZE_MB) -> None:
        self.folder, self._size_mb = folder, size_mb
        self._ballast = folder / BALLAST

    def mount(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if failed := _mount(self.folder, self._size_mb):
            raise HarnessError(f"A small disk could not be mounted at {self.folder}: {failed}")

    def fill(self) -> int:
        """Fill the disk completely, also with space freed since; return the total size of the ballast."""
        descriptor = os.open(self._ballast, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            for chunk in CHUNKS:
                _extend(descriptor, chunk)
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

    def refusal(self) -> str:
        """Return the error of a write to the disk; "" if there is space."""
        probe = self.folder / "probe"
        try:
            probe.write_bytes(b"x" * CHUNKS[-1])
        except OSError as error:
            return f"{errno.errorcode[error.errno or 0]}, {error.strerror}"
        finally:
            probe.unlink(missing_ok=True)
        return ""

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def free_bytes(self) -> int:
        return shutil.disk_usage(self.folder).free

    def unmount(self) -> None:
        _umount(self.folder)


def impossible() -> str:
    """Return why such a disk can't be mounted here, or "": found by mounting one."""
    if not shutil.which("mount"):
        return "the program mount is missing"
    with tempfile.TemporaryDirectory(prefix="streamgauge-disk-") as name:
        failed = _mount(Path(name), 1)
        if not failed:
            _umount(Path(name))
        return failed


def _extend(descriptor: int, chunk: int) -> None:
    while True:
        try:
            os.posix_fallocate(descriptor, os.fstat(descriptor).st_size, chunk)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                return
            raise


def _mount(folder: Path, size_mb: int) -> str:
    options = f"size={size_mb}m,mode=0700"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "streamgauge", str(folder)], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else " ".join(done.stderr.split()) or f"mount ended with {done.returncode}"


def _umount(folder: Path) -> None:
    """Detach the mount at once; the kernel frees it when the last open file is closed."""
    subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)
