"""Which BPE package counts o200k tokens best for the meter: load, memory, speed, agreement, odd text.

Each package runs in its own process, and last the meter of `shiftbook.tokens` itself. Texts are made here
from a fixed seed; nothing is read from disk. What is not installed is skipped and named. In an environment
of its own:

    python -m venv bpe && bpe/bin/pip install bpe-openai quicktok-v1 rs-bpe
    PYTHONPATH=src bpe/bin/python benchmarks/bpe.py

Times are the best of 60 rounds; memory is VmHWM, which unlike ru_maxrss is not inherited. Linux only.
The choice made from it is docs/decisions/0001-bpe-package.md.
"""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PACKAGES = ("bpe-openai", "quicktok-v1", "rs-bpe", "shiftbook")
WORDS = ("the", "order", "was", "packed", "at", "nine", "stock", "of", "blue", "mugs", "fell", "to", "four")
SPEED = ("prose 1 kB", "random 1 kB", "json 1 kB")


def load(package: str) -> Callable[[str], int]:
    """Import the package and return its count of plain text, special tokens' names taken as text."""
    found: Callable[[str], int]
    if package == "bpe-openai":
        found = importlib.import_module("bpe_openai._bindings").tokenizer_for_encoding("o200k_base").count
    elif package == "quicktok-v1":
        found = importlib.import_module("quicktok").get_encoding("o200k_base").count
    elif package == "rs-bpe":
        found = importlib.import_module("rs_bpe.bpe").openai.o200k_base().count
    else:
        found = importlib.import_module("shiftbook.tokens").BpeMeter().count
    return found


def texts() -> dict[str, str]:
    """Plain, odd and hostile texts, the same in every process."""
    draw = random.Random(11)
    prose = "".join(draw.choice(WORDS) + draw.choice((" ", " ", " ", ", ", ".\n")) for _ in range(400))
    stock = [{"sku": f"mug-{n}", "count": n * 7, "ok": n % 2 == 0} for n in range(40)]
    made = {
        "prose 1 kB": prose[:1024],
        "random 1 kB": "".join(chr(draw.randrange(33, 127)) for _ in range(1024)),
        "json 1 kB": json.dumps(stock)[:1024],
        "emoji": "\U0001f469\u200d\U0001f467\u200d\U0001f466\U0001f3f4\u200d\u2620\ufe0f" * 50,
        "cjk": "\u5e93\u5b58\u6e05\u5355\u4e0e\u8ba2\u5355\u3002\u30b7\u30d5\u30c8\ud55c\uad6d\uc5b4" * 50,
        "combining": "e\u0301\u0302\u0303\u0304" * 200,
        "controls": "".join(map(chr, range(32))) * 20 + "\x7f\x85\u2028\u2029\ufeff\ufffd\ufffe\uffff",
        "special": "<|endoftext|> <|im_start|>system <|endofprompt|>" * 20,
        "contractions": "I'LL we'Re don'T \u017f'\u017f it'\u017f" * 50,
        "spaces": " " * 20_000 + "x" + "\n" * 20_000 + "\t" * 20_000,
        "empty": "",
    }
    for n in range(20_000):
        tops = [draw.choice((128, 0x3000, 0x110000)) for _ in range(draw.randrange(60))]
        points = [draw.randrange(top) for top in tops]
        made[f"mix {n}"] = "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)
    return made


def long_texts() -> dict[str, str]:
    """Five megabytes each, most of them one piece to the pattern that cuts text before merging."""
    size = 5_000_000
    letters = "".join(random.Random(12).choices("abcdefghijklmnopqrstuvwxyz", k=size))
    return {
        "5 MB a": "a" * size,
        "5 MB space": " " * size,
        "5 MB ^": "^" * size,
        "5 MB newline": "\n" * size,
        "5 MB random letters": letters,
        "5 MB cjk": "\u5e93" * (size // 3),
        "5 MB prose": "the order was packed at nine " * (size // 29),
    }


def peak_mib() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def timed(count: Callable[[str], int], text: str) -> float:
    """Seconds of one count, best of 60 rounds of 50."""
    best = 1e9
    for _ in range(60):
        start = time.perf_counter()
        for _ in range(50):
            count(text)
        best = min(best, (time.perf_counter() - start) / 50)
    return best


def measure(package: str) -> tuple[dict[str, object], dict[str, int]]:
    """All figures and all counts of one package, in this process."""
    before = peak_mib()
    start = time.perf_counter()
    count = load(package)
    count("warm")
    figures: dict[str, object] = {
        "load, ms": round((time.perf_counter() - start) * 1e3),
        "load, MiB": round(peak_mib() - before),
    }
    made = texts()
    for name in SPEED:
        figures[f"{name}, us"] = round(timed(count, made[name]) * 1e6, 1)
    counts = {name: count(text) for name, text in made.items()}
    for name, text in long_texts().items():
        start = time.perf_counter()
        counts[name] = count(text)
        figures[f"{name}, ms"] = round((time.perf_counter() - start) * 1e3)
    try:
        figures["lone surrogate"] = count("a\ud800b")
    except (TypeError, UnicodeEncodeError) as error:
        figures["lone surrogate"] = type(error).__name__
    return figures, counts


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
        return
    figures: dict[str, dict[str, object]] = {}
    counts: dict[str, dict[str, int]] = {}
    for package in PACKAGES:
        command = [sys.executable, __file__, package]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            print(f"{package}: skipped: {done.stderr.strip().splitlines()[-1]}")
        else:
            figures[package], counts[package] = json.loads(done.stdout)
    tables = list(counts.values())
    if not tables:
        raise SystemExit("No package is installed; the head of this file says how.")
    print("| |", " | ".join(figures), "|")
    print("| --- |", " | ".join("---" for _ in figures), "|")
    for row in next(iter(figures.values())):
        print(f"| {row} |", " | ".join(str(column[row]) for column in figures.values()), "|")
    differing = [name for name in tables[0] if len({table[name] for table in tables}) > 1]
    print(f"texts counted differently: {len(differing)} of {len(tables[0])} {differing[:20]}")


if __name__ == "__main__":
    main()
