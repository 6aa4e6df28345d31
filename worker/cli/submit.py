"""`submit`: send a job, and wait for it if asked to."""

from typing import Any

import click

from worker.cli.command import DONE, Face, command, how_to_call
from worker.cli.ending import tell_ending
from worker.cli.present import describe
from worker.cli.spec import build_spec, is_outside, parse_metadata, read_spec
from worker.cli.watch import follow, open_view
from worker.domain.job import JobId
from worker.domain.media import CaptionWish, Mode, Quality
from worker.errors import ClipbossError
from worker.settings import Settings


@command("submit")
@click.argument("source", required=False)
@click.option("--start", metavar="TIME", help='Seconds or "hh:mm:ss.mmm"; the beginning if left out.')
@click.option("--end", metavar="TIME", help="Likewise; the end if left out.")
@click.option("--mode", type=click.Choice([mode.value for mode in Mode]), help="How to cut.")
@click.option("--hide-lead", is_flag=True, help="With --mode copy: have players skip what lies before the start.")
@click.option("--max-height", type=int, metavar="PIXELS", help="Scale down to at most this height.")
@click.option("--quality", type=click.Choice([quality.value for quality in Quality]), help="Of what is encoded.")
@click.option(
    "--rendition", "renditions", type=int, multiple=True, metavar="PIXELS", help="Also a file of this height."
)
@click.option("--loudness", type=float, metavar="LUFS", help="Bring the sound to this loudness, such as -16.")
@click.option("--no-transcript", is_flag=True, help="Do not write down what is said.")
@click.option("--transcript", type=click.Choice(["required", "best-effort"]), help="What if speech recognition fails.")
@click.option("--captions", type=click.Choice([wish.value for wish in CaptionWish]), help="Also a file with captions.")
@click.option("--language", metavar="CODE", help="What is spoken, such as en.")
@click.option("--no-poster", is_flag=True, help="Do not make a poster.")
@click.option("--poster", metavar="TIME", help="Take the poster at this time of the clip.")
@click.option("--sprite", is_flag=True, help="Make a sheet of small pictures, for a player's time bar.")
@click.option("--waveform", is_flag=True, help="Make a waveform.")
@click.option("--pages", metavar="SECONDS|never", help="Split it into pages of this length, or not at all.")
@click.option("--key-prefix", metavar="PATH", help="Put the artifacts under this prefix.")
@click.option("--metadata", metavar="JSON", help="An object that comes back with the result.")
@click.option("--spec", metavar="FILE", help="A whole job spec as JSON, from a file or - for stdin.")
@click.option("--queue", default="clip", show_default=True, help="The queue to send to.")
@click.option("--priority", type=click.IntRange(-(2**31), 2**31 - 1), help="Higher goes first; 0 if left out.")
@click.option("--wait", is_flag=True, help="Show progress, end when the job ends.")
async def submit(
    face: Face, *, source: str | None, spec: str | None, queue: str, priority: int | None, wait: bool, **wishes: Any
) -> int:
    """Send a job: SOURCE is an http(s):// or s3:// URL, or a file of this machine.

    The job is checked before it is sent. With --wait the exit code tells how it ended: 0 done, 1 failed or cancelled.
    """
    wanted = _spec(source, spec, wishes)
    settings = face.load_settings()
    if not wait:  # else the job itself will tell
        _warn_if_refused(face, settings, wanted)
    async with face.open_app(settings) as app:
        options = {} if priority is None else {"priority": priority}
        job_id = await app.desk.submit(queue, wanted, options)
        if job_id is None:
            raise ClipbossError(f"queue {queue!r} refused the job: its policy allows no other one now")
        if wait:
            [job] = await follow(app.desk, [job_id], open_view(face.out, {job_id: describe(wanted)}))
            return tell_ending(face.out, job)
    _tell_sent(face, job_id, queue)
    return DONE


def _spec(source: str | None, spec_file: str | None, wishes: dict[str, Any]) -> dict[str, Any]:
    if spec_file is not None:
        if source is not None or any(wish not in (None, False, ()) for wish in wishes.values()):
            raise click.UsageError("--spec says everything: leave out SOURCE and the options about the clip.")
        return read_spec(spec_file)
    if source is None:
        raise click.UsageError("Missing argument 'SOURCE' (or --spec FILE).")
    no_transcript, no_poster = wishes.pop("no_transcript"), wishes.pop("no_poster")
    if no_poster and wishes["poster"] is not None:
        raise click.UsageError("--poster and --no-poster exclude each other.")
    if no_transcript and wishes["transcript"] is not None:
        raise click.UsageError("--transcript and --no-transcript exclude each other.")
    wishes["metadata"] = parse_metadata(wishes["metadata"])
    wishes["transcript"] = False if no_transcript else wishes["transcript"]
    wishes["pages"] = _pages(wishes["pages"])
    wishes["poster"] = False if no_poster else wishes["poster"]
    wishes["renditions"] = list(wishes["renditions"]) or None
    for flag in ("hide_lead", "sprite", "waveform"):
        wishes[flag] = wishes[flag] or None
    return build_spec(source, wishes)


def _pages(text: str | None) -> Any:
    """Wrong ones are told with everything else that is wrong."""
    try:
        return text if text is None else {"seconds": float(text)}
    except ValueError:
        return text


def _warn_if_refused(face: Face, settings: Settings, spec: dict[str, Any]) -> None:
    if is_outside(spec["source"], settings.local_source_roots):
        face.out.warn(
            "this file lies outside LOCAL_SOURCE_ROOTS as set here; a worker with the same setting will refuse it"
        )


def _tell_sent(face: Face, job_id: JobId, queue: str) -> None:
    if face.out.as_json:
        face.out.value({"id": job_id, "queue": queue})
    elif face.out.is_terminal:
        face.out.line(f"sent to queue {queue}: {job_id}", "green")
        face.out.line(f"watch it: {how_to_call()} jobs watch {job_id}", "dim")
    else:
        face.out.line(str(job_id))
