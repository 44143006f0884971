"""Declared in the workload.toml beside this."""

from __future__ import annotations

from workloads.declared.workload import beside

WORKLOAD = beside(__file__)
