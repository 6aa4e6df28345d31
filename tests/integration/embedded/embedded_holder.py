"""Uses the embedded server of a directory until standard input ends; its first line says how that went."""

import json
import sys
from pathlib import Path

from worker.db.embedded import EmbeddedPostgres
from worker.errors import DatabaseUnavailable

server = EmbeddedPostgres(Path(sys.argv[1]), durable=sys.argv[2] == "durable")
try:
    dsn = server.start_blocking()
except DatabaseUnavailable as exc:
    print(json.dumps({"error": str(exc)}), flush=True)
    sys.exit(2)
print(json.dumps({"dsn": dsn, "home": str(server.home)}), flush=True)
sys.stdin.read()
server.stop_blocking()
