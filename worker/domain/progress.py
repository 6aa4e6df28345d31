"""How far a job is, from how far its stage is."""

from collections.abc import Mapping

from worker.domain.job import StageName

#: share of a typical job's time; they add up to 1
WEIGHTS: Mapping[StageName, float] = {
    StageName.RESOLVE: 0.04,
    StageName.CLIP: 0.56,
    StageName.UPLOAD: 0.10,
    StageName.ASR: 0.28,
    StageName.FINALIZE: 0.02,
}


def overall(stage: StageName, fraction: float) -> float:
    """0 … 1 over the whole job, for a stage that is `fraction` done."""
    names = list(WEIGHTS)
    before = sum(WEIGHTS[name] for name in names[: names.index(stage)])
    return min(1.0, before + WEIGHTS[stage] * min(1.0, max(0.0, fraction)))
