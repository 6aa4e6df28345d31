"""The worker's HTTP face for machines: `/metrics` for Prometheus, `/healthz` for whoever restarts what hangs."""

import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from worker.errors import ConfigError

if TYPE_CHECKING:  # for the type checker only
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


@dataclass(frozen=True, slots=True)
class MetricsServer:
    port: int
    stop: Callable[[], None]


def serve(registry: CollectorRegistry, port: int, *, host: str, is_alive: Callable[[], bool]) -> MetricsServer:
    """Answer from threads of its own, so that it does so while the worker's loop hangs; port 0 takes a free one."""
    kind = _Server6 if ":" in host else _Server
    try:
        server = make_server(host, port, _answers(registry, is_alive), server_class=kind, handler_class=_Handler)
    except (OSError, OverflowError) as exc:
        raise ConfigError(f"METRICS_PORT={port}: cannot listen on {host}:{port} ({exc}). Choose a free port.") from exc
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return MetricsServer(port=server.server_port, stop=stop)


def _answers(registry: CollectorRegistry, is_alive: Callable[[], bool]) -> "WSGIApplication":
    metrics: WSGIApplication = make_wsgi_app(registry)

    def answer(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/healthz":
            return metrics(environ, start)
        # Nothing of the database: a fleet must not be restarted because the database is.
        status, text = ("200 OK", b"ok\n") if is_alive() else ("503 Service Unavailable", b"the loop stands still\n")
        start(status, [("Content-Type", "text/plain")])
        return [text]

    return answer


class _Server(ThreadingMixIn, WSGIServer):
    #: a client that never reads its answer must not hold up the exit
    daemon_threads = True


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    def log_message(self, *_args: object) -> None:
        """A scrape is no event."""
