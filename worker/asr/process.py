"""A warm speech process: started by the first question, kept between jobs, killed with a question that is cancelled."""

import asyncio
from collections.abc import Mapping
from typing import Any

from worker.asr.child import Child
from worker.errors import AsrRefused, AsrUnavailable, OutputCorrupt


class SpeechProcess:
    """One question at a time: what runs in there uses every core already. See `serving` for the other end."""

    def __init__(self, module: str, *arguments: str, patience_seconds: float) -> None:
        """`patience_seconds` bounds the load of the weights and each answer."""
        self._module = module
        self._arguments = arguments
        self._patience_seconds = patience_seconds
        self._turn = asyncio.Lock()
        self._child: Child | None = None
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """Of the warm process; None before the first question and after a death."""
        return self._child.pid if self._child is not None and self._child.is_alive else None

    async def ask(self, question: Mapping[str, Any]) -> Any:
        async with self._turn:
            child = await self._warm_child()
            try:
                await child.send(question)
                return await self._answer(child)
            except asyncio.CancelledError:
                await child.stop()
                raise

    async def close(self) -> None:
        self._is_closed = True
        # Without waiting for a turn: the question that has it fails at once instead of holding up the exit.
        await self._stop_child()
        async with self._turn:
            await self._stop_child()

    async def _answer(self, child: Child) -> Any:
        while True:
            message = await child.receive(patience_seconds=self._patience_seconds)
            match message:
                case {"still_at_it": True}:
                    continue
                case {"answer": answer}:
                    return answer
                case {"bad_sound": str(why)}:
                    raise OutputCorrupt(f"The sound extracted for transcription cannot be read: {why}.")
                case {"refused": str(why)}:
                    raise AsrRefused(why)
                case {"failed": str(why)}:
                    raise AsrUnavailable(f"The speech process {self._module} failed: {why}.")
                case _:
                    await child.stop()
                    told = ", ".join(sorted(message)) or "an empty one"
                    raise AsrUnavailable(f"The speech process sent a message nobody knows: {told}.")

    async def _warm_child(self) -> Child:
        if self._child is not None and not self._child.is_alive:
            await self._stop_child()
        if self._child is None and not self._is_closed:
            self._child = await Child.start(self._module, *self._arguments)
        if self._child is None or self._is_closed:
            raise AsrUnavailable("The speech engine is closed because the worker is stopping.")
        return self._child

    async def _stop_child(self) -> None:
        if self._child is not None:
            await self._child.stop()
            self._child = None
