"""A terminal in place of standard error, and what stands in its last line."""

import io
import threading
import time


class Terminal(io.StringIO):
    """Standard error on a terminal; `shown` is what stands in the cursor's line."""

    def isatty(self):
        return True

    @property
    def shown(self) -> str:
        columns: list[str] = []
        at = 0
        for character in self.getvalue():
            if character in "\r\n":
                at = 0
                columns = columns if character == "\r" else []
            else:
                columns[at : at + 1] = character
                at += 1
        return "".join(columns).rstrip()


def until(terminal: Terminal, text: str) -> None:
    end = time.monotonic() + 60
    while text not in terminal.shown:
        assert time.monotonic() < end, f"{text!r} never came"
        time.sleep(0.001)


def is_over(terminal: Terminal) -> bool:
    threads = [thread for thread in threading.enumerate() if thread.name == "constrained-waiting"]
    return terminal.shown == "" and not threads
