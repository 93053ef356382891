"""Runs pickled jobs from standard input on whatever driver VK_ICD_FILENAMES names; see drivers.SwiftShader."""

import os
import pickle
import sys
import traceback


def main() -> None:
    """Answer each job with ("ok", outputs) or ("error", text) until standard input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a driver's chatter must not mix with the answers

    def answer(kind: str, value: object) -> None:
        pickle.dump((kind, value), answers)
        answers.flush()

    try:
        from tests.kernels.drivers import Wgpu

        driver = Wgpu()
        answer("ok", driver.words)
    except Exception:
        answer("error", traceback.format_exc())
        return
    while True:
        try:
            job = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer("ok", driver.run(job))
        except Exception:
            answer("error", traceback.format_exc())


if __name__ == "__main__":
    main()
