"""The PyTorch oracle in a process of its own: one question at a time, a short queue, a time limit that kills.

The server never imports torch. The child keeps its model and last trace between questions, so asking layer by layer
costs one forward pass; a question that takes too long, or a child that dies, costs a new child and nothing else.
"""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from server.errors import ORACLE_CODES, ApiError, ClientGone, OracleBusy, OracleFailed, OracleTimeout
from server.frames import pack_json, receive_frame

CHILD = (sys.executable, "-m", "server.oracle_child")
# A question that must first start PyTorch and load its model gets this much longer: were it killed meanwhile, the next
# one would have to begin again, and a slow machine would never answer.
LOAD_S = 240
DYING_S = 5
_ROOT = Path(__file__).resolve().parent.parent


class OracleQueue:
    """Ask the child process, in order of arrival.

    timeout_s: seconds for one question, LOAD_S more when the child has to load the model first. waiting: questions
    that may wait while one runs.
    command: what to run as the child; tests put other programs here.
    """

    def __init__(self, *, timeout_s: float, waiting: int, command: tuple[str, ...] = CHILD):
        self.timeout_s = timeout_s
        self.waiting = waiting
        self.command = command
        self.last_failure: str | None = None
        self._turn = asyncio.Lock()
        self._pending = 0  # questions that run or wait
        self._child: asyncio.subprocess.Process | None = None
        self._loaded: str | None = None  # folder of the model that the child holds

    async def ask(self, question: dict, gone: Callable[[], Awaitable[None]]) -> bytes:
        """The child's answer, safetensors bytes. `gone` returns when the client has hung up.

        Raises OracleBusy (queue full), ClientGone, OracleTimeout, OracleFailed, or the refusal the child answered with.
        """
        if self._pending > self.waiting:
            raise OracleBusy(
                f"The oracle is busy and {self.waiting} more requests wait already; try again shortly.",
                headers={"Retry-After": "5"},
            )
        self._pending += 1
        try:
            await self._wait_for_turn(gone)
            try:
                return await self._answer(question)
            finally:
                self._turn.release()
        finally:
            self._pending -= 1

    async def _answer(self, question: dict) -> bytes:
        folder = question.get("folder")
        limit_s = self.timeout_s + (0 if folder == self._loaded else LOAD_S)
        try:
            async with asyncio.timeout(limit_s):
                answer = await self._exchange(question)
                self._loaded = folder
                return answer
        except TimeoutError:
            self._kill()
            raise OracleTimeout(
                f"The oracle did not finish within {limit_s:g} seconds and was stopped; try a shorter prompt."
            ) from None
        except ApiError:
            raise
        except BaseException:  # also when this task is cancelled: a half-read answer must not reach the next question
            self._kill()
            raise

    async def close(self) -> None:
        """Stop the child."""
        child = self._child
        self._kill()
        if child is not None:
            await child.wait()

    async def _wait_for_turn(self, gone: Callable[[], Awaitable[None]]) -> None:
        mine = asyncio.ensure_future(self._turn.acquire())
        lost = asyncio.ensure_future(gone())
        try:
            await asyncio.wait({mine, lost}, return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            if mine.done() and not mine.cancelled():
                self._turn.release()
            raise
        finally:
            lost.cancel()
            if not mine.done():
                mine.cancel()
        if not mine.done():
            raise ClientGone("The client hung up.")

    async def _exchange(self, question: dict) -> bytes:
        child = await self._running_child()
        try:
            child.stdin.write(pack_json(question))
            await child.stdin.drain()
            verdict = json.loads(await receive_frame(child.stdout))
            if verdict["ok"]:
                self.last_failure = None
                return await receive_frame(child.stdout)
        except (asyncio.IncompleteReadError, ConnectionError):
            # A child whose pipe closed is about to end; killing it meanwhile would take its exit status from asyncio.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DYING_S):
                    await child.wait()
            self._kill()
            self.last_failure = f"The oracle's process ended unexpectedly (exit status {await child.wait()})."
            raise OracleFailed(self.last_failure + " It starts again with the next request.") from None
        raise ORACLE_CODES.get(verdict["code"], OracleFailed)(verdict["message"])

    async def _running_child(self) -> asyncio.subprocess.Process:
        if self._child is None or self._child.returncode is not None:
            pipe = asyncio.subprocess.PIPE
            # Threads of torch that wait must not spin: on busy cores that made it eight times slower.
            environment = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ}
            try:
                self._child = await asyncio.create_subprocess_exec(
                    *self.command, stdin=pipe, stdout=pipe, cwd=_ROOT, env=environment
                )
            except OSError as error:
                raise OracleFailed(f"The oracle's process could not be started: {error.strerror}.") from None
        return self._child

    def _kill(self) -> None:
        child, self._child, self._loaded = self._child, None, None
        if child is not None and child.returncode is None:
            child.kill()
