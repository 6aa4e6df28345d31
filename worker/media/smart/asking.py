"""How a worker asks for a smart cut. Apart from the order itself, so that the child loads only what it needs."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from worker.domain.media import ClipRange, Probe
from worker.media.expectation import first_frame_by
from worker.media.smart.order import SmartOrder
from worker.media.source import ReadableSource


def order_for(
    source: ReadableSource, probe: Probe, span: ClipRange, output: Path, *, preset: str, crf: int, threads: int
) -> SmartOrder:
    assert probe.video is not None, "only pictures are cut at keyframes"
    return SmartOrder(
        input=source.input,
        protocols=source.protocols,
        formats=source.formats,
        output=f"file:{output}",
        start_seconds=span.start_seconds,
        end_seconds=span.end_seconds,
        source_start_seconds=probe.start_seconds,
        fps=probe.video.fps,
        video_index=probe.video.index or 0,
        audio_index=probe.audio.index if probe.audio is not None else None,
        first_frame_by_seconds=first_frame_by(probe, span),
        preset=preset,
        crf=crf,
        threads=threads,
    )


def child_argv(order: SmartOrder) -> list[str]:
    """A process of its own: what hangs or crashes inside libav can be killed and takes no worker with it."""
    return [sys.executable, "-m", "worker.media.smart.child", json.dumps(asdict(order))]
