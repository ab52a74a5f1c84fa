"""The Java process that runs the simulator."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from constrained.errors import GameError, install_hint
from constrained.subprocesses import Subprocess, SubprocessError

PACKAGES = ("scienceworld", "py4j")
ANSWER_SECONDS = 120.0
"""Time limit for one request: a step takes 0.01 seconds, the longest gold path 10."""

MEMORY = ("-Xmx512m", "-XX:+UseSerialGC")
"""Java's options unless the user's environment sets any: a task needs about 100 MB, and processes share a machine."""

OPTION_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")

SAME_ORDER = ("-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UnlockExperimentalVMOptions", "-XX:hashCode=2")
"""Give all objects the same identity hash. The simulator iterates over sets of objects, so their order, and with it the
game, would differ from run to run; with equal hashes it is the order of insertion."""


class JavaProcess:
    """A Java process, with a gateway to the objects in it.

    Parameters
    ----------
    answer_seconds : float, optional
        Time limit for one request; a process that takes longer is killed.

    Attributes
    ----------
    gateway : py4j.java_gateway.JavaGateway
    process : Subprocess

    Raises
    ------
    GameError
        Java or a package isn't installed, or Java doesn't start.
    """

    def __init__(self, answer_seconds: float = ANSWER_SECONDS):
        self.answer_seconds = answer_seconds
        folder = tempfile.TemporaryDirectory()  # the simulator writes a file to its working directory
        self.process = Subprocess(_command(), folder.name)  # ends when its standard input is closed
        clients: list = []
        self.close = weakref.finalize(self, _close, self.process, clients, folder)
        with self.answering("start"):
            self.gateway = self._connect()
            clients.append(self.gateway._gateway_client)

    @property
    def usable(self) -> bool:
        """Whether it is running and was started by this process, not by its parent before a fork."""
        return self.process.running

    @contextmanager
    def answering(self, request: str) -> Iterator[None]:
        """Turn failures of the gateway inside this block into GameError, and kill the process after the time limit."""
        from py4j.protocol import Py4JError

        # A fork shares the parent's pipes: using or ending the process here would break the parent's game.
        if not self.process.owned:
            raise GameError(
                "this ScienceWorld simulator belongs to another process",
                hint="open the environment in the process that plays it",
            )
        try:
            if not self.usable:
                raise self.process.death()
            with self.process.deadline(self.answer_seconds), _py4j_silent():
                yield
        except (OSError, ValueError, Py4JError, SubprocessError) as error:
            # The connection may break a moment before the process has ended.
            if not isinstance(error, SubprocessError) and not self.process.died():
                raise GameError(f"ScienceWorld's simulator failed to {request[:80]}: {_reason(error)}") from error
            death = error if isinstance(error, SubprocessError) else self.process.death()
            self.close()
            raise GameError(
                f"ScienceWorld's simulator {death.how} over {request[:80]!r}{death.last_words}",
                hint="reset() starts the task anew in a new process; if that fails, too, check that `java -version` "
                "says 11 or later",
            ) from None

    def _connect(self):
        from py4j.java_gateway import GatewayParameters, JavaGateway

        port, token = int(self.process.receive()), self.process.receive()
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
        client = gateway._gateway_client
        client.garbage_collect_object = partial(_release, client.garbage_collect_object)
        # The simulator prints a page at every step, which nobody reads.
        nowhere = gateway.jvm.java.io.OutputStream.nullOutputStream()
        gateway.jvm.java.lang.System.setOut(gateway.jvm.java.io.PrintStream(nowhere))
        return gateway


def _command() -> list[str]:
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise GameError(f"ScienceWorld isn't installed: no {', '.join(missing)}", hint=install_hint("scienceworld"))
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if java is None:
        raise GameError(
            f"ScienceWorld needs Java, and there is no `java` {f'in {home}/bin, JAVA_HOME' if home else 'on the path'}",
            hint="install a Java runtime, 11 or later, such as Debian's openjdk-17-jre-headless",
        )
    from py4j.java_gateway import find_jar_path

    package = importlib.util.find_spec("scienceworld")
    assert package is not None and package.origin is not None  # looked for above
    jar = Path(package.origin).with_name("scienceworld.jar")
    memory = () if any(name in os.environ for name in OPTION_VARIABLES) else MEMORY
    return [
        java, *memory, *SAME_ORDER, "-classpath", os.pathsep.join((find_jar_path(), str(jar))),
        "py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0",
    ]  # fmt: skip


def _close(process: Subprocess, clients: list, folder: tempfile.TemporaryDirectory) -> None:
    for client in clients:
        # Otherwise py4j would try to tell the dead process which objects are no longer needed, and log the failures.
        client.is_connected = False
    process.close()
    if process.owned:
        folder.cleanup()


def _release(release: Callable[[str], None], target_id: str) -> None:
    # Python may collect an object at any moment, even after the process has died and before anyone has noticed.
    with _py4j_silent():
        release(target_id)


def _reason(error: Exception) -> str:
    """The message of an exception; for one thrown in Java, without its stack trace."""
    thrown = getattr(error, "java_exception", None)
    return str(thrown.toString() if thrown is not None else error)


@contextmanager
def _py4j_silent() -> Iterator[None]:
    """Keep py4j from logging a stack trace for each error that it also raises."""
    loggers = logging.getLogger(), logging.getLogger("py4j.java_gateway")

    def foreign(record: logging.LogRecord) -> bool:
        return Path(record.pathname).parent.name != "py4j"

    for logger in loggers:
        logger.addFilter(foreign)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(foreign)
