"""Run the command line, as ``undertow`` or ``python -m undertow``.

A signal that comes while the libraries are loaded ends the process in one sentence;
later ones are answered by the command itself.
"""

import os
import signal

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_loading = True


def main() -> None:
    """Load the command line and run it."""
    global _loading
    # What is ignored, as by nohup, stays ignored.
    own = [n for n in _SIGNALS if signal.getsignal(n) is not signal.SIG_IGN]
    for number in own:
        signal.signal(number, _leave)
    from undertow.cli import main as run

    _loading = False
    try:
        run()
    finally:
        for number in own:  # a process that is ending is not disturbed any more
            signal.signal(number, signal.SIG_IGN)


def _leave(number: int, frame: object) -> None:
    """End at once: nothing is open yet, or nothing any more."""
    del frame
    rest = " before it began; nothing was read or charged" if _loading else ""
    os.write(2, f"stopped by {signal.Signals(number).name}{rest}.\n".encode())
    os._exit(128 + number)


if __name__ == "__main__":
    main()
