"""What the child process of tests/test_subprocesses.py does."""

import ctypes
import os
import time

from constrained.errors import GrammarError
from constrained.subprocesses import serve


def handle(request, send):
    kind, *rest = request
    if kind == "echo":
        print("this is no answer")
        for one in rest:
            send(one)
    elif kind == "pid":
        send(os.getpid())
    elif kind == "sleep":
        time.sleep(rest[0])
        send("awake")
    elif kind == "await":
        while not os.path.exists(rest[0]):
            time.sleep(0.01)
        send("awake")
    elif kind == "busy":  # a call into C that holds the interpreter
        send(os.getpid())
        ctypes.PyDLL(None).usleep(300_000_000)
    elif kind == "fill":
        bytearray(rest[0])
    elif kind == "exit":
        os.write(2, b"some words\n\nthe last words\n")
        os._exit(3)
    elif kind == "error":
        raise GrammarError("it is wrong", line=1, column=2, hint="make it right")
    else:
        raise KeyError(kind)


def main():
    serve(handle)
