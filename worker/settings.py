"""Every setting by its environment name; the environment wins over `.env`, which wins over the defaults."""

import difflib
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from worker.errors import ConfigError

Names = Annotated[tuple[str, ...], NoDecode]
Paths = Annotated[tuple[Path, ...], NoDecode]
Networks = Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode]
PositiveInt = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0)]
AsrEngineName = Literal["moonshine", "faster-whisper", "http", "none"]
VideoEncoderName = Literal["libx264", "h264_nvenc", "h264_vaapi", "h264_qsv", "h264_amf", "h264_videotoolbox"]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_file=".env", extra="ignore", case_sensitive=False, env_ignore_empty=True)

    #: PostgreSQL; unset = an embedded server under SCRATCH_DIR
    database_url: SecretStr | None = None
    #: schema of the pg-boss tables
    queue_schema: Annotated[str, Field(min_length=1, max_length=50)] = "pgboss"
    #: work with a pg-boss schema that is newer than this release knows
    queue_allow_newer: bool = False
    #: queues this worker takes jobs from, comma-separated
    queues: Names = ("clip", "clip.page")
    #: jobs at once
    max_concurrency: Annotated[int, Field(ge=1, le=1000)] = 2
    #: how often to look for work when nobody rings
    poll_interval_sec: PositiveFloat = 2.0
    #: how often leases are renewed, and a worker tells that it is there
    heartbeat_interval_sec: PositiveFloat = 10.0
    #: a job whose worker has not been heard of for this long is given to another
    lease_timeout_sec: PositiveFloat = 45.0
    recovery_scan_interval_sec: PositiveFloat = 15.0
    #: attempts of a job, for queues that the worker creates
    max_attempts: PositiveInt = 3
    #: how long running jobs may take to finish after SIGTERM
    shutdown_timeout_sec: Annotated[float, Field(ge=0)] = 30.0
    #: how long a worker that stopped or died is remembered
    worker_retention_days: PositiveFloat = 7.0

    #: working files, the embedded database, local artifacts
    scratch_dir: Path = Path("scratch")
    #: megabytes that must stay free on the scratch disk
    scratch_min_free_mb: Annotated[int, Field(ge=0)] = 200
    #: file:///directory or s3://bucket/prefix; unset = SCRATCH_DIR/artifacts
    storage_url: str | None = None
    s3_endpoint_url: str | None = None
    aws_region: str | None = None
    aws_access_key_id: str | None = None
    aws_secret_access_key: SecretStr | None = None
    aws_session_token: SecretStr | None = None

    #: ffmpeg binary; unset = on PATH, else the one that comes with the package
    ffmpeg: str | None = None
    #: libx264, or h264_nvenc, h264_vaapi, h264_qsv, h264_amf, h264_videotoolbox; one that fails is replaced by libx264
    video_encoder: VideoEncoderName = "libx264"
    clip_timeout_sec: PositiveFloat = 3600.0
    #: processor seconds, address space and file size that one ffmpeg may take
    clip_max_cpu_sec: PositiveInt = 14400
    clip_max_memory_mb: Annotated[int, Field(ge=256)] = 6144
    clip_max_output_mb: PositiveInt = 20480
    #: how long yt-dlp may look for the media of a ytdlp: source
    ytdlp_timeout_sec: PositiveFloat = 60.0
    #: a cookies.txt, as browsers export it, for sites that want an account
    ytdlp_cookies: Path | None = None
    #: http://user:password@host:port; ytdlp: sources are resolved and read through it
    ytdlp_proxy: SecretStr | None = None
    #: moonshine, faster-whisper, http or none; see docs/speech.md
    asr_engine: AsrEngineName = "moonshine"
    #: for the engine http: the base of an OpenAI-compatible API, such as https://api.openai.com/v1
    asr_url: str | None = None
    #: of faster-whisper a name or a directory, default small; of http a name the server knows, default whisper-1
    asr_model: str | None = None
    asr_api_key: SecretStr | None = None
    #: for faster-whisper: auto, cpu or cuda, and int8, float16, …
    asr_device: Literal["auto", "cpu", "cuda"] = "auto"
    asr_compute_type: str = "default"
    #: how long a speech engine may take for one window, and one in a process here to load its weights too
    asr_timeout_sec: PositiveFloat = 120.0
    #: jobs longer than this are split into pages of at most so many seconds, in at most so many chains at a time
    page_threshold_sec: PositiveFloat = 900.0
    page_sec: Annotated[float, Field(ge=1)] = 120.0
    max_partitions: Annotated[int, Field(ge=1, le=64)] = 8

    #: let http(s) sources be on private and loopback addresses
    allow_private_sources: bool = False
    #: only these private networks instead, comma-separated (10.1.0.0/16)
    private_source_networks: Networks = ()
    #: megabytes that a job may read from a remote source, and keep of one that cannot be read in parts
    source_max_mb: PositiveInt = 51200
    source_spool_max_mb: PositiveInt = 4096
    #: connections to one host at a time, for all jobs of this worker together
    source_connections: PositiveInt = 16
    #: a server that sends next to nothing for this long is given up
    source_read_timeout_sec: PositiveFloat = 30.0
    #: directories that file:// sources may lie in, comma-separated
    local_source_roots: Paths = ()

    web_host: str = "127.0.0.1"
    web_port: Annotated[int, Field(ge=0, le=65535)] = 8080
    api_token: SecretStr | None = None
    #: port of the Prometheus endpoint; unset = none
    metrics_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    #: where that endpoint listens; 0.0.0.0 = every address, for a Prometheus on another machine
    metrics_host: str = "127.0.0.1"
    log_format: Literal["console", "json"] = "console"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("queues", "local_source_roots", "private_source_networks", mode="before")
    @classmethod
    def _split_commas(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("log_level", "log_format", mode="before")
    @classmethod
    def _lower(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    @field_validator("ytdlp_proxy")
    @classmethod
    def _is_http_proxy(cls, value: SecretStr | None) -> SecretStr | None:
        parts = urlsplit(value.get_secret_value() if value else "http://none:0")
        if parts.scheme != "http" or not parts.hostname or parts.port is None:
            raise ValueError("must be an HTTP proxy: http://host:port")
        return value

    @model_validator(mode="after")
    def _beats_fit_into_the_lease(self) -> Self:
        # One lost beat must not cost the lease.
        if self.heartbeat_interval_sec * 2 > self.lease_timeout_sec:
            raise ValueError("HEARTBEAT_INTERVAL_SEC must be at most half of LEASE_TIMEOUT_SEC")
        if not self.queues:
            raise ValueError("QUEUES must name at least one queue")
        return self

    @model_validator(mode="after")
    def _speech_server_is_named(self) -> Self:
        if self.asr_engine == "http" and not self.asr_url:
            raise ValueError("ASR_ENGINE=http needs ASR_URL, such as https://api.openai.com/v1")
        return self

    @property
    def artifacts_url(self) -> str:
        return self.storage_url or (self.scratch_dir.absolute() / "artifacts").as_uri()


def load_settings(**overrides: Any) -> Settings:
    """Settings from the environment and `.env`; ConfigError names what is wrong with which setting."""
    try:
        _refuse_misspelt(Path(".env"))
        return Settings(**overrides)
    except ValidationError as exc:
        raise ConfigError("; ".join(_problems(exc))) from None
    except (OSError, UnicodeError) as exc:
        raise ConfigError(f".env cannot be read: {exc}") from exc


def _problems(exc: ValidationError) -> list[str]:
    problems = []
    for error in exc.errors(include_url=False, include_context=False, include_input=False):
        message = error["msg"].removeprefix("Value error, ")
        name = str(error["loc"][0]).upper() if error["loc"] else ""
        problems.append(f"{name}: {message}" if name else message)
    return problems


def _refuse_misspelt(env_file: Path) -> None:
    """A misspelt name would be ignored in silence; one that resembles none of ours is somebody else's."""
    if not env_file.is_file():
        return
    known = [name.upper() for name in Settings.model_fields]
    for name in dotenv_values(env_file):
        close = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.85)
        if close and name.upper() not in known:
            raise ConfigError(f"{env_file}: unknown setting {name}; did you mean {close[0]}?")
