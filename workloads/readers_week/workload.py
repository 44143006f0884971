"""The workload in the workload.toml of this folder."""

from __future__ import annotations

from workloads.declared.workload import beside

WORKLOAD = beside(__file__)
