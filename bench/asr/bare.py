"""The bare engine, alone in a process: `python -m bench.asr.bare VAD_THRESHOLD WAV…` prints what it heard as JSON."""

import json
import resource
import sys
import time
import wave

import numpy as np
from moonshine_voice import ModelArch, get_model_path
from moonshine_voice.transcriber import Transcriber


def main() -> None:
    threshold, *paths = sys.argv[1:]
    options = {} if threshold == "default" else {"vad_threshold": threshold}
    engine = Transcriber(get_model_path("tiny-en"), ModelArch.TINY, options=options)
    heard = []
    for path in paths:
        with wave.open(path, "rb") as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").astype(np.float32) / 32768.0
            rate = file.getframerate()
        cpu, wall = time.process_time(), time.monotonic()
        lines = engine.transcribe_without_streaming(samples, rate).lines
        text = " ".join(line.text.strip() for line in lines)
        heard.append({"text": text, "cpu": time.process_time() - cpu, "wall": time.monotonic() - wall})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # kilobytes on Linux, bytes on macOS
    print(json.dumps({"heard": heard, "peak_bytes": peak * (1024 if sys.platform == "linux" else 1)}))


if __name__ == "__main__":
    main()
