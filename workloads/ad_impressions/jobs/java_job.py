"""Checks the files of the history, then starts a job in Java.

    python java_job.py CONFIG.json JAVA WORD...

The words are the job's command. The job gets the same run config and replaces this process.
"""

from __future__ import annotations

import os
import sys

from workloads.ad_impressions.jobs.spark_record import FIELDS
from workloads.jobs import history_files
from workloads.jobs.run_config import read_config


def main(config_path: str, java: str, *words: str) -> None:
    config = read_config(config_path)
    if config["history"]:
        history_files.refuse(config, FIELDS)
    os.execvp(java, [java, *words, config_path])


if __name__ == "__main__":
    main(*sys.argv[1:])
