"""Where ASR_URL leads: people give the base of an API or its whole address, and servers differ in it."""

from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from worker.errors import ConfigError

_TRANSCRIPTIONS = "/audio/transcriptions"
#: what whisper.cpp's server calls it
_INFERENCE = "/inference"


@dataclass(frozen=True, slots=True)
class Endpoint:
    transcriptions: str
    #: lists what the server has; of a server without such a list, its front page
    models: str

    @property
    def label(self) -> str:
        """For messages: a query may hold a key."""
        return self.transcriptions.partition("?")[0]


def parse_endpoint(url: str) -> Endpoint:
    parts = urlsplit(url.strip())
    try:
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ConfigError("ASR_URL must be an http(s) address, such as https://api.openai.com/v1")
    if parts.username is not None or parts.password is not None:
        raise ConfigError("ASR_URL must not hold a user or a password: put the key into ASR_API_KEY")
    path = parts.path.rstrip("/")
    if path.endswith(_INFERENCE):
        transcriptions, models = path, "/"
    else:
        base = path.removesuffix(_TRANSCRIPTIONS)
        transcriptions, models = base + _TRANSCRIPTIONS, base + "/models"
    return Endpoint(
        urlunsplit((parts.scheme, parts.netloc, transcriptions, parts.query, "")),
        urlunsplit((parts.scheme, parts.netloc, models, parts.query, "")),
    )
