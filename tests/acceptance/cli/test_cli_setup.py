"""`migrate` and `doctor`: from an empty database to a healthy one."""

from pathlib import Path

from tests.acceptance.cli.conftest import CommandLine


async def test_empty_database_becomes_healthy_by_migrating_once(empty_dsn: str, tmp_path: Path) -> None:
    call = CommandLine(tmp_path, {"DATABASE_URL": empty_dsn})
    unready = await call("jobs", "list")
    ill = await call("doctor", "--json")
    first = await call("migrate")
    again = await call("migrate", "--json")
    well = await call("doctor")
    assert unready.code == 2
    assert "run `python -m worker migrate`" in unready.err
    assert ill.code == 1
    assert {check["name"] for check in ill.value["checks"] if not check["ok"]} == {"tables", "pg-boss", "queues"}
    assert (first.code, "applied 0001_jobs" in first.out) == (0, True)
    assert (again.code, again.value["applied"], again.value["queue_schema_created"]) == (0, [], False)
    assert (well.code, well.out.splitlines()[-1]) == (0, "Everything is in place.")
    assert "✓ queues     clip, clip.page" in well.out


async def test_queue_schema_can_be_chosen(empty_dsn: str, tmp_path: Path) -> None:
    call = CommandLine(tmp_path, {"DATABASE_URL": empty_dsn})
    made = await call("migrate", "--queue-schema", "My-Boss", "--json")
    assert (made.code, made.value["queue_schema"]) == (0, "My-Boss")
    listed = await call("jobs", "list", "--json", QUEUE_SCHEMA="My-Boss")
    assert (listed.code, listed.value) == (0, [])


async def test_doctor_tells_everything_that_is_wrong_at_once(call_without_database: CommandLine) -> None:
    found = await call_without_database(
        "doctor",
        DATABASE_URL="postgresql://nobody@127.0.0.1:1/none",
        STORAGE_URL="ftp://nowhere",
        FFMPEG="no-such-ffmpeg",
        ASR_ENGINE="faster-whisper",
        ASR_MODEL="/proc/none",
        SCRATCH_DIR="/proc/none",
    )
    marks = [line.split()[:2] for line in found.out.splitlines()]
    wrong = [["✗", name] for name in ("ffmpeg", "speech", "scratch", "storage", "database")]
    assert found.code == 1
    assert marks == [["✓", "python"], ["✓", "settings"], *wrong, ["5", "to"]]
    assert "ASR_MODEL=/proc/none is not a directory" in found.out
