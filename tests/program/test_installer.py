"""Packages are installed step by step: what is said meanwhile, why one failed, and from whom they are fetched."""

from __future__ import annotations

import pytest

from harness.install import installer
from harness.model import HarnessError


def test_a_step_that_fails_ends_in_a_sentence_with_its_log(tmp_path, capsys):
    log = tmp_path / "log"
    with (tmp_path / "lock").open("w") as lock:
        installer.run_step("seeing", ["sh", "-c", "echo earlier: dns error"], lock, log)
        with pytest.raises(HarnessError) as caught:
            installer.run_step("listening", ["sh", "-c", "echo all is quiet; exit 3"], lock, log)
    assert "Preparing failed while listening: it ended with exit code 3, last words: all is quiet." in str(caught.value)
    assert str(log) in str(caught.value)
    assert log.read_text().startswith("$ sh -c 'echo earlier: dns error'\nearlier: dns error\n$ sh")
    assert capsys.readouterr().err == "streamgauge: seeing ...\nstreamgauge: listening ...\n"


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("error: failed to write: No space left on device (os error 28)", "the disk is full"),
        ("Caused by: dns error\nCaused by: failed to lookup address", "the package index was not reached"),
        (
            "ERROR: Could not find a version that satisfies uv (from versions: none)",
            "the package index was not reached",
        ),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "a downloaded package is not the pinned one"),
        ("error: Hash mismatch for `rich==15.0.0`", "a downloaded package is not the pinned one"),
        ("\n  something else  \n\n", "it ended with exit code 2, last words: something else"),
        ("", "it ended with exit code 2, last words: none"),
    ],
)
def test_why_a_step_failed(said, cause, tmp_path):
    sentence = installer.explain("installing", 2, said, tmp_path / "log")
    assert sentence.startswith(f"Preparing failed while installing: {cause}. To go on, ")


def test_a_sentence_of_our_own_is_passed_on(tmp_path):
    said = "Fetching ...\nstreamgauge: The disk is full.\n"
    assert installer.explain("fetching", 4, said, tmp_path / "log") == "The disk is full."


def test_pips_mirror_is_handed_to_the_installer_unless_the_user_told_it_another():
    listed = ":env:.index-url='mirror-a'\nglobal.cert='certificates.pem'\nglobal.timeout='60'\n"
    assert installer.translate_pip_settings(listed, {}) == {
        "UV_DEFAULT_INDEX": "mirror-a",
        "SSL_CERT_FILE": "certificates.pem",
    }
    assert "UV_DEFAULT_INDEX" not in installer.translate_pip_settings(listed, {"UV_DEFAULT_INDEX": "mirror-b"})


def test_what_would_confuse_the_installers_is_left_out():
    kept = installer.clean_environment({"PYTHONPATH": "x", "PYSPARK_HADOOP_VERSION": "2", "PIP_USER": "1", "LANG": "C"})
    assert kept == {
        "LANG": "C",
        "PIP_USER": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_PYTHON_DOWNLOADS": "never",
    }
