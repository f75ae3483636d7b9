"""`make chaos`, that is `python -m tests.chaos`: the storm at full length; prints what it did and found.

Every run must be finished, with one effect for each key, no gap, no fork, no entry of a fenced writer, and a
clean `verify`. `--fenceless` takes the epoch check out of the store: then it must fail, and says how.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import signal
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests import postgres
from tests.chaos.ground import Crew, can_have_namespaces, let_in, namespace
from tests.chaos.storm import Plan, Report, Storm, hands
from tests.crash.receiver import receiving

SHOWN = 12


def main() -> int:
    """Run it; the exit code is 0 when everything held."""
    ask = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    ask.add_argument("--seed", type=int, default=None, help="which faults, and whom; printed")
    ask.add_argument("--runs", type=int, default=200)
    ask.add_argument("--workers", type=int, default=6)
    ask.add_argument("--concurrency", type=int, default=4)
    ask.add_argument("--lease", type=float, default=5, help="seconds")
    ask.add_argument(
        "--pace", type=int, default=700, help="half a charge takes at most so long, milliseconds"
    )
    ask.add_argument("--skew", type=float, default=60, help="seconds; two workers' clocks are off by it")
    ask.add_argument("--waits", type=int, default=900, help="seconds after which it has failed")
    ask.add_argument("--fenceless", action="store_true", help="a store without the epoch check: must fail")
    ask.add_argument("--no-namespace", action="store_true", help="leave the network partition out")
    ask.add_argument("--logs", type=Path, default=None, help="a folder in which the workers' logs are kept")
    given = ask.parse_args()
    seed = secrets.randbelow(1_000_000) if given.seed is None else given.seed
    plan = Plan(
        runs=given.runs,
        messages=given.runs // 5,
        seed=seed,
        lease_ms=int(given.lease * 1000),
        fenceless=given.fenceless,
        waits_s=given.waits,
        every=max(5, given.runs * 6 // 25),
    )
    # Also when it is told to end, what was started is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    apart = not given.no_namespace and can_have_namespaces()
    print(f"seed {seed}: {given.runs} runs, {given.workers} workers, lease {given.lease} s")
    print(
        "a worker in a network namespace of its own" if apart else "no network namespace here: no partition"
    )
    with ExitStack() as stack:
        settings = ("listen_addresses=*",) if apart else ("max_connections=200",)
        server = stack.enter_context(postgres.server(*settings, durable=True))
        receiver = stack.enter_context(receiving(honours_keys=True, host="0.0.0.0" if apart else "127.0.0.1"))
        space = stack.enter_context(namespace()) if apart else None
        if apart:
            let_in(server)
        folder = given.logs or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="shiftbook-chaos"))
        )
        folder.mkdir(parents=True, exist_ok=True)
        crew = Crew(server.create(), receiver, folder, plan.lease_ms, given.concurrency, given.pace)
        crew.hands = hands(given.workers, int(given.skew * 1000), space)
        stack.callback(crew.end)
        try:
            report = asyncio.run(Storm(plan, server, crew, receiver).go())
        except BaseException:
            print(crew.told(), file=sys.stderr)
            raise
        return tell(report, plan)


def tell(report: Report, plan: Plan) -> int:
    """Print the report; the exit code."""
    print("\n".join(report.faults))
    verdict = report.verdict
    print(
        f"{verdict.runs} runs in {report.seconds:.0f} s: {verdict.entries:,} entries, "
        f"{verdict.actions:,} actions, {verdict.attempts - verdict.actions:,} of them begun again, "
        f"{verdict.keys:,} keys acted on, "
        f"{verdict.takings - verdict.runs:,} takings beyond the first that wrote"
    )
    for death, took in sorted(report.takeovers_ms.items()):
        ratios = sorted(each / plan.lease_ms for each in took)
        print(
            f"from {death} to takeover: {len(took)} runs, median {statistics.median(ratios):.2f} leases, "
            f"most {ratios[-1]:.2f} leases of {plan.lease_ms / 1000:g} s"
        )
    print(f"the longest lull: {report.lull_ms / plan.lease_ms:.2f} leases")
    for fault in verdict.faults[:SHOWN]:
        print("FAULT", fault)
    if len(verdict.faults) > SHOWN:
        print(f"... and {len(verdict.faults) - SHOWN} more")
    print("FAILED" if verdict.faults else "everything held")
    return 1 if verdict.faults else 0


if __name__ == "__main__":
    sys.exit(main())
