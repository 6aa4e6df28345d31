"""A transcription server like OpenAI's with a real engine behind it, which can be told to misbehave.

Run as `python -m tests.asr_server`: prints its port. POST /script: answers for the next requests, as a list of
{status, headers, body, seconds, cut}; an empty object is an honest answer. GET /seen: what was asked, then forgotten.
"""

import asyncio
import io
import json
import sys
from typing import Any

import numpy as np
from aiohttp import web
from moonshine_voice import ModelArch, get_model_path
from moonshine_voice.transcriber import Transcriber

from tests.recordings import decode_16k


class Server:
    def __init__(self) -> None:
        self._engine = Transcriber(get_model_path("tiny-en"), ModelArch.TINY, options={"vad_threshold": "0.0"})
        # One at a time: the engine mixes up what it hears in two threads.
        self._turn = asyncio.Lock()
        self._script: list[dict[str, Any]] = []
        self._seen: list[dict[str, Any]] = []

    def app(self) -> web.Application:
        app = web.Application(client_max_size=32 << 20)
        app.router.add_post("/script", self._take_script)
        app.router.add_get("/seen", self._tell_seen)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/audio/transcriptions", self._transcribe)
        app.router.add_post("/inference", self._transcribe)
        return app

    async def _take_script(self, request: web.Request) -> web.Response:
        self._script, self._seen = await request.json(), []
        return web.json_response({})

    async def _tell_seen(self, request: web.Request) -> web.Response:
        seen, self._seen = self._seen, []
        return web.json_response(seen)

    async def _models(self, request: web.Request) -> web.StreamResponse:
        return await self._scripted(request) or web.json_response({"data": [{"id": "tiny-en"}]})

    async def _transcribe(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        fields = {name: form.getall(name) for name in form if name != "file"}
        file = form["file"]
        assert isinstance(file, web.FileField)
        self._seen.append({"headers": dict(request.headers), "fields": fields, "file": file.filename})
        if answer := await self._scripted(request):
            return answer
        samples = decode_16k(io.BytesIO(file.file.read()))
        async with self._turn:
            heard = await asyncio.to_thread(self._hear, samples)
        return web.json_response(heard if fields["response_format"] == ["verbose_json"] else {"text": heard["text"]})

    async def _scripted(self, request: web.Request) -> web.StreamResponse | None:
        step = self._script.pop(0) if self._script else {}
        await asyncio.sleep(step.get("seconds", 0))
        if "cut" in step:
            response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "4000"})
            await response.prepare(request)
            await response.write(b'{"text": "Ever')
            assert request.transport is not None
            request.transport.close()
            return response
        if "status" not in step:
            return None
        headers = {"Content-Type": "application/json", **step.get("headers", {})}
        return web.Response(status=step["status"], headers=headers, text=step.get("body", "{}"))

    def _hear(self, samples: Any) -> dict[str, Any]:
        sound = samples.astype(np.float32) / 32768.0
        lines = self._engine.transcribe_without_streaming(sound, 16000).lines
        segments, words = [], []
        for number, line in enumerate(lines):
            start, end, said = line.start_time, line.start_time + line.duration, line.text.split()
            segments.append({"id": number, "start": start, "end": end, "text": f" {line.text.strip()}"})
            step = line.duration / max(1, len(said))
            # Without punctuation, as OpenAI's own.
            words += [
                {"word": word.strip(".,?!"), "start": start + step * place, "end": start + step * (place + 1)}
                for place, word in enumerate(said)
            ]
        text = " ".join(line.text.strip() for line in lines)
        facts = {"task": "transcribe", "language": "english", "duration": len(samples) / 16000}
        return {**facts, "text": text, "segments": segments, "words": words}


async def main() -> None:
    runner = web.AppRunner(Server().app())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(json.dumps(runner.addresses[0][1]), flush=True)
    # Ends with whoever started it, whose end of the pipe closes.
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
