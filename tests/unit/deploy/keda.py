"""What our KEDA objects may say: the fields of keda.sh/v1alpha1 that they use, their types, and nothing else."""

from typing import Any


def _closed(required: str = "", /, **properties: Any) -> dict[str, Any]:
    """A cluster drops fields it does not know, which is how misspelt ones get lost; so none are allowed here."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": required.split(),
    }


_WORD = {"type": "string", "minLength": 1}
_COUNT = {"type": "integer", "minimum": 0}
_METADATA = _closed("name", name=_WORD)
_POLICY = _closed(
    "type value periodSeconds",
    type={"enum": ["Percent", "Pods"]},
    value=_COUNT,
    periodSeconds={**_COUNT, "maximum": 1800},
)
_RULES = _closed(
    stabilizationWindowSeconds={**_COUNT, "maximum": 3600},
    selectPolicy={"enum": ["Max", "Min", "Disabled"]},
    policies={"type": "array", "items": _POLICY, "minItems": 1},
)
_TRIGGER = _closed(
    "type metadata",
    type={"const": "postgresql"},
    name=_WORD,
    metricType={"enum": ["AverageValue", "Value"]},
    authenticationRef=_closed("name", name=_WORD, kind=_WORD),
    # KEDA reads all of them as text
    metadata=_closed(
        "query targetQueryValue", query=_WORD, targetQueryValue={"type": "string", "pattern": r"^\d+(\.\d+)?$"},
        activationTargetQueryValue={"type": "string", "pattern": r"^\d+(\.\d+)?$"},
    ),
)  # fmt: skip
_SCALED_OBJECT = _closed(
    "scaleTargetRef triggers",
    scaleTargetRef=_closed("name", name=_WORD, kind=_WORD, apiVersion=_WORD),
    pollingInterval=_COUNT,
    cooldownPeriod=_COUNT,
    minReplicaCount=_COUNT,
    maxReplicaCount=_COUNT,
    advanced=_closed(
        horizontalPodAutoscalerConfig=_closed(behavior=_closed(scaleDown=_RULES, scaleUp=_RULES)),
        restoreToOriginalReplicaCount={"type": "boolean"},
    ),
    triggers={"type": "array", "items": _TRIGGER, "minItems": 1},
)
_AUTHENTICATION = _closed(
    secretTargetRef={
        "type": "array",
        "minItems": 1,
        "items": _closed("parameter name key", parameter=_WORD, name=_WORD, key=_WORD),
    }
)


def schema_of(kind: str) -> dict[str, Any]:
    spec = {"ScaledObject": _SCALED_OBJECT, "TriggerAuthentication": _AUTHENTICATION}[kind]
    return _closed(
        "apiVersion kind metadata spec",
        apiVersion={"const": "keda.sh/v1alpha1"},
        kind={"const": kind},
        metadata=_METADATA,
        spec=spec,
    )
