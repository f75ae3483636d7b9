"""Rules of the code: size, names, imports, time and chance, what is not done."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.tidy.rule import CODE, SOURCE, Findings, Source, rule

LINE_LENGTH, MODULE_LINES, FUNCTION_LINES, PUBLIC_METHODS = 110, 400, 70, 12
FORMAT_SPOILERS = {"pickle", "marshal", "msgpack", "shelve", "dill", "cloudpickle"}
FACES = ("shiftbook.cli", "shiftbook.inspector", "shiftbook.studies")
PURE = tuple(f"src/shiftbook/{room}/*.py" for room in ("economics", "projections", "observers", "prompt"))

_HEAVY = """
anthropic backports bpe_openai click genai_prices httpx httpx2 hypothesis jinja2 jsonschema mcp mcp_types
numpy openai opentelemetry procrastinate psycopg psycopg_pool pydantic pydantic_ai pytest quicktok referencing
rich rs_bpe safetensors scipy sqlite_vec starlette tokenizers typer uvicorn xllamacpp
"""
LAZY = frozenset(_HEAVY.split())
"""Optional or heavy packages: loaded by whoever needs them, when they are needed."""

_IMPURE = """
apsw asyncio http multiprocessing random shutil signal socket sqlite3 subprocess tempfile threading time
urllib.request shiftbook.clock
"""
IMPURE = tuple(_IMPURE.split())

_CLOCK = {
    "now_ms": "datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today datetime.date.today "
    "time.time time.time_ns time.ctime",
    "steady_ms": "time.monotonic time.monotonic_ns time.perf_counter time.perf_counter_ns time.process_time",
    "sleep_ms": "time.sleep asyncio.sleep",
    "token or new_run_id": "uuid.uuid1 uuid.uuid4 os.urandom random. secrets.",
}
CLOCK_CALLS = {used: instead for instead, names in _CLOCK.items() for used in names.split()}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@rule(*CODE, "*.sql", why="two files fit side by side on a screen", bad="x = '" + "a" * 110 + "'")
def line_length(source: Source) -> Findings:
    for number, line in enumerate(source.lines, 1):
        if len(line) > LINE_LENGTH:
            yield number, f"{len(line)} characters; at most {LINE_LENGTH}"


@rule(*CODE, why="a module is one idea, read in one sitting; split it by ideas", bad="x = 1\n" * 401)
def module_length(source: Source) -> Findings:
    if len(source.lines) > MODULE_LINES:
        yield 1, f"{len(source.lines)} lines; at most {MODULE_LINES}"


@rule(
    *CODE,
    why="a function fits on a screen: keep the branching in the parent and move the work into pure leaves",
    bad="def long():\n" + "    x = 1\n" * 71,
    good='def short():\n    """' + "Told at length.\n" * 80 + '    """\n    return 1\n',
)
def function_length(source: Source) -> Findings:
    for node in ast.walk(source.tree):
        if isinstance(node, Function):
            told = ast.get_docstring(node) is not None and len(node.body) > 1
            length = (node.end_lineno or 0) - node.body[1 if told else 0].lineno + 2
            if length > FUNCTION_LINES:
                yield (
                    node.lineno,
                    f"{node.name}: {length} lines besides its docstring; at most {FUNCTION_LINES}",
                )


@rule(
    *SOURCE,
    why="a class that answers every question grows without end; ask a projection or a view",
    bad="class Store:\n" + "".join(f"    def ask{n}(self): ...\n" for n in range(13)),
    good="class Store:\n" + "".join(f"    def _ask{n}(self): ...\n" for n in range(13)),
)
def class_size(source: Source) -> Findings:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef):
            names = {each.name for each in node.body if isinstance(each, Function)}
            public = [name for name in names if not name.startswith("_")]
            if len(public) > PUBLIC_METHODS:
                yield node.lineno, f"{node.name}: {len(public)} public methods; at most {PUBLIC_METHODS}"


@rule(
    *SOURCE,
    why="only clock.py reads time, makes ids and draws random numbers: tests and reruns must own them",
    bad=[
        "from datetime import datetime as dt\nx = dt.now()",
        "import time as t\ndef f(now=t.time): ...",
        "import random\nrandom.shuffle([])",
        "import os.path\nx = os.urandom(8)",
        "import asyncio\nasync def f(): await asyncio.sleep(1)",
        "from secrets import token_hex\ntoken_hex()",
        "import uuid\nx = str(uuid.uuid4())",
    ],
    good="import asyncio\nimport random\nasync def f(s): await asyncio.sleep(0)\nx = random.Random(7)\n",
)
def clock_calls(source: Source) -> Findings:
    if source.path != "src/shiftbook/clock.py":
        for line, used in source.uses():
            instead = CLOCK_CALLS.get(used) or ("." in used and CLOCK_CALLS.get(used.partition(".")[0] + "."))
            if instead:
                yield line, f"{used}: ask the Clock that you are given ({instead})"


@rule(
    "tests/*.py",
    why="a test that waits is slow on a good day and wrong on a bad one; await the event, or read a pipe",
    bad=[
        "import time\ntime.sleep(1)",
        "from asyncio import sleep\nx = sleep(0.1)",
        "child = 'time.sleep(9)'",
    ],
    good="import asyncio\nasync def f(clock): await clock.sleep_ms(5); await asyncio.sleep(0)\n",
    at="tests/room/test_room.py",
)
def no_sleep_in_tests(source: Source) -> Findings:
    if source.path == "tests/tidy/code.py":
        return
    for line, used in source.uses():
        if used in ("time.sleep", "asyncio.sleep"):
            yield line, used
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and "time.sleep(" in str(node.value):
            yield node.lineno, "time.sleep in a script for a child process"


@rule(
    *SOURCE,
    why="what is not done is an issue, not a note in the code; half a feature is not merged",
    bad=["x = 1  # TODO later", "def f():\n    raise NotImplementedError\n"],
    good="x = 'todo list'\n",
)
def nothing_left_open(source: Source) -> Findings:
    for number, line in enumerate(source.lines, 1):
        if found := re.search(r"\b(TODO|FIXME|XXX|NotImplementedError)\b", line):
            yield number, found[0]


@rule(
    *SOURCE,
    why="an import in a function hides a circle; only a heavy package or a verb's own module may wait",
    bad=["def f():\n    import json\n", "async def f():\n    from shiftbook.run import loop\n"],
    good="def f():\n    from pydantic import TypeAdapter\n    from rich.table import Table\n",
)
def imports_on_top(source: Source) -> Findings:
    functions = [node for node in ast.walk(source.tree) if isinstance(node, Function)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    for node, _, full in source.imports:
        verb = source.path.startswith("src/shiftbook/cli/") and full.startswith(FACES)
        if id(node) in inside and full.partition(".")[0] not in LAZY and not verb:
            yield node.lineno, f"{full} is imported inside a function"


@rule(
    *SOURCE,
    "benchmarks/*.py",
    why="a module opens with a sentence that a stranger could repeat, then the idea, then what it refuses",
    bad=["x = 1\n", "import json\n'''late'''\n"],
    good='"""What it is."""\nx = 1\n',
)
def module_docstring(source: Source) -> Findings:
    if source.text.strip() and not ast.get_docstring(source.tree):
        yield 1, "no docstring at the top"


@rule(
    "src/*__init__.py",
    why="an __init__ is a face: it names what a package offers, so that the inside may move",
    bad=["def f(): ...\n", "x = 1\n", "for x in y: pass\n"],
    good='"""Face."""\nfrom a import b\n__all__ = ["b"]\nif TYPE_CHECKING:\n    import c\n',
    at="src/shiftbook/room/__init__.py",
)
def init_is_a_face(source: Source) -> Findings:
    for node in source.tree.body:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
                continue
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if name in ("__all__", "__version__"):
                    continue
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body, orelse=[]):
                if all(isinstance(each, ast.Import | ast.ImportFrom) for each in body):
                    continue
            case _:
                pass
        yield node.lineno, f"logic: {ast.unparse(node).splitlines()[0]}"


@rule(
    *CODE,
    why="such bytes cannot be read by another version or a person, and some run code when loaded",
    bad=["import pickle", "from msgpack import packb"],
    good="import json",
)
def plain_formats(source: Source) -> Findings:
    for node, _, full in source.imports:
        if full.partition(".")[0] in FORMAT_SPOILERS:
            yield node.lineno, f"{full}: use shiftbook.codec or JSON"


@rule(
    *SOURCE,
    why="the system's SQLite may have known faults in its write-ahead log; apsw brings a current one",
    bad="import sqlite3",
    good="import apsw",
)
def one_sqlite(source: Source) -> Findings:
    for node, _, full in source.imports:
        if full.partition(".")[0] == "sqlite3":
            yield node.lineno, "sqlite3: use apsw"


@rule(
    *PURE,
    "src/shiftbook/run/step.py",
    why="a pure room answers the same years later, anywhere: no waiting, files, clock or hash seed",
    bad=["async def f(): ...", "import asyncio", "x = hash('a')", "from shiftbook.clock import Clock"],
    good="import json\nx = sorted({1})\n",
    at="src/shiftbook/prompt/render.py",
)
def pure_rooms(source: Source) -> Findings:
    for node, _, full in source.imports:
        if any(full == each or full.startswith(each + ".") for each in IMPURE):
            yield node.lineno, f"imports {full}"
    for each in ast.walk(source.tree):
        if isinstance(each, ast.AsyncFunctionDef):
            yield each.lineno, f"async def {each.name}"
        elif isinstance(each, ast.Call) and ast.unparse(each.func) in ("hash", "open", "input", "id"):
            yield each.lineno, f"calls {ast.unparse(each.func)}"


@rule(
    *CODE,
    why="such a name says nothing, so everything ends up there; code lives where it is used, or earns a name",
    bad=["class RunManager: ...\n", ("src/shiftbook/run/utils.py", "x = 1\n")],
    good="class Lease: ...\n",
)
def telling_names(source: Source) -> Findings:
    for part in Path(source.path).with_suffix("").parts:
        if re.fullmatch(r"_?(utils?|helpers?|managers?|misc|common)", part):
            yield 1, f"{part} as the name of a file or folder"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef) and re.search(r"(Manager|Helper|Utils?)$", node.name):
            yield node.lineno, f"class {node.name}"
