"""Whisper models write sentences where nobody speaks; the figures that come with a segment give most of them away."""

#: the three limits are the defaults of whisper and faster-whisper for the same question
NO_SPEECH_PROBABILITY = 0.6
MEAN_LOG_PROBABILITY = -1.0
#: of text to its zlib form; speech stays below, a phrase said over and over does not
COMPRESSION_RATIO = 2.4


def is_invented(
    *,
    no_speech_probability: float | None,
    mean_log_probability: float | None,
    compression_ratio: float | None,
) -> bool:
    """None: the engine does not tell. Silence alone is no proof: the model must also be unsure of its words."""
    if compression_ratio is not None and compression_ratio > COMPRESSION_RATIO:
        return True
    if no_speech_probability is None or mean_log_probability is None:
        return False
    return no_speech_probability > NO_SPEECH_PROBABILITY and mean_log_probability < MEAN_LOG_PROBABILITY
