"""The oracle's own process: `python -m server.oracle_child`, started and killed by server/oracle_queue.py.

Questions come in on stdin and answers go out on what was stdout (server/frames.py); whatever a library prints goes to
stderr. It ends when stdin does. A refusal with a sentence is an answer; anything unexpected is logged and answered
with a plain sentence, and the process lives on.
"""

import json
import os
import signal
import sys
import traceback
from pathlib import Path

from server.frames import pack, pack_json, read_frame


def answer(question: dict, kept: dict) -> bytes:
    """Safetensors bytes for one question. `kept` holds the model from one question to the next."""
    from safetensors.numpy import save

    from server.oracle_run import Oracle

    key = (question["folder"], question["metadata"]["model_hash"])
    if kept.get("key") != key:
        kept.clear()  # the old model goes before the new one comes
        kept.update(oracle=Oracle(Path(question["folder"])), key=key)
    found = kept["oracle"].trace(question["ids"], question["include"], question["layers"], question["positions"])
    return save(found, metadata=question["metadata"])


def refusal(error: Exception) -> dict:
    """What went wrong, as a frame: errors written for people keep their sentence."""
    from python_ref.errors import OracleError
    from weights.errors import CheckpointError

    if isinstance(error, OracleError | CheckpointError):
        code = "invalid-request" if error.code == "unknown-name" else "model-refused"
        return {"ok": False, "code": code, "message": str(error)}
    if isinstance(error, MemoryError) or "not enough memory" in str(error):
        message = "This machine has too little memory for that question; ask for a shorter prompt."
        return {"ok": False, "code": "oracle-failed", "message": message}
    traceback.print_exception(error)
    return {"ok": False, "code": "oracle-failed", "message": "The oracle failed; the server's log has the details."}


def main() -> None:
    """Answer until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal is for the server, which ends this process
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    kept: dict = {}
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        try:
            reply = pack_json({"ok": True}) + pack(answer(json.loads(frame), kept))
        except Exception as error:
            reply = pack_json(refusal(error))
        out.write(reply)
        out.flush()


if __name__ == "__main__":
    main()
