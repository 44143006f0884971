"""Strict schemas of the Kubernetes objects that a run consists of, for two versions.

They are cut out of the package kubernetes-validate, whose 17,000 files no test needs, without their descriptions:

    uv run --no-project --with kubernetes-validate==1.37.0 -m tests.quick.kubernetes_schemas

`validate` refuses what `kubernetes_validate.validate(..., strict=True)` refuses: it is the same schema.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

STORED = Path(__file__).parent / "stored" / "kubernetes-schemas.json.xz"
VERSIONS = ("1.34", "1.37")
KINDS = (
    *("configmap-v1", "job-batch-v1", "networkpolicy-networking-v1", "persistentvolumeclaim-v1", "pod-v1"),
    *("role-rbac-v1", "rolebinding-rbac-v1", "service-v1", "serviceaccount-v1", "statefulset-apps-v1"),
)


def mistakes(given: Mapping[str, Any], version: str) -> list[str]:
    """What is wrong with an object, as `spec.template.spec: 'x' is ...`."""
    import jsonschema  # type: ignore[import-untyped]

    schemas = _stored()[version]
    # rbac.authorization.k8s.io/v1 -> rbac-v1
    api = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", given["apiVersion"])
    checker = jsonschema.Draft202012Validator({**schemas[f"{given['kind'].lower()}-{api}"], "$defs": schemas["$defs"]})
    return [f"{'.'.join(map(str, each.path))}: {each.message}" for each in checker.iter_errors(given)]


@cache
def _stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lzma.decompress(STORED.read_bytes()))
    return found


def cut(folder: Path) -> dict[str, Any]:
    """The schemas of KINDS, and what they refer to."""
    every = _plain(json.loads((folder / "_definitions.json").read_text(encoding="utf-8"))["$defs"])
    kinds = {kind: _plain(json.loads((folder / f"{kind}.json").read_text(encoding="utf-8"))) for kind in KINDS}
    needed: dict[str, Any] = {}
    left = [name for schema in kinds.values() for name in _referred(schema)]
    while left:
        if (name := left.pop()) not in needed:
            needed[name] = every[name]
            left += _referred(every[name])
    return {**kinds, "$defs": dict(sorted(needed.items()))}


def _plain(schema: Any) -> Any:
    """Without descriptions, and with references into the same file."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema.replace("/api/_definitions.json#", "#") if isinstance(schema, str) else schema
    told = {"description", "$id", "$schema"}
    return {key: _plain(each) for key, each in schema.items() if key not in told or not isinstance(each, str)}


def _referred(schema: Any) -> Iterator[str]:
    yield from re.findall(r'"\$ref": "#/\$defs/([^"]+)"', json.dumps(schema))


if __name__ == "__main__":
    import kubernetes_validate  # type: ignore[import-not-found]

    folders = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
    made = {version: cut(folders / f"v{version}.0-local-strict") for version in VERSIONS}
    STORED.write_bytes(lzma.compress(json.dumps(made, separators=(",", ":")).encode(), preset=9))
