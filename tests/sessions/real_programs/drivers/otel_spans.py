"""OpenTelemetry: an instrumentation of a vendor's SDK, its spans written as OpenTelemetry writes JSON."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

URL, OUT, PACKAGE = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
RULES = "The harbour master answers in one line. " * 200
SOUND = {"type": "object", "properties": {"pier": {"type": "string"}}}


def openai_calls() -> None:
    from openai import OpenAI

    client = OpenAI(base_url=URL, max_retries=0)
    rules = {"role": "system", "content": RULES}
    for words in ("How deep is it?", "And now?"):
        client.chat.completions.create(model="gpt-5.1", messages=[rules, {"role": "user", "content": words}])
    stream = client.chat.completions.create(
        model="gpt-5.1",
        messages=[rules, {"role": "user", "content": "Slowly."}],
        stream=True,
        stream_options={"include_usage": True},
    )
    for _ in stream:
        pass


def anthropic_calls() -> None:
    from anthropic import Anthropic

    client = Anthropic(base_url=URL.removesuffix("/v1"), max_retries=0)
    system = [{"type": "text", "text": RULES, "cache_control": {"type": "ephemeral"}}]
    for words in ("How deep is it?", "And now?", "And then?"):
        client.messages.create(
            model="claude-sonnet-4-5",
            max_tokens=500,
            system=system,
            messages=[{"role": "user", "content": words}],
        )


VENDORS = {
    "openai_v2": ("OpenAIInstrumentor", openai_calls),
    "openai": ("OpenAIInstrumentor", openai_calls),
    "anthropic": ("AnthropicInstrumentor", anthropic_calls),
}


def main() -> None:
    name, calls = VENDORS[PACKAGE]
    getattr(import_module(f"opentelemetry.instrumentation.{PACKAGE}"), name)().instrument()
    provider = TracerProvider()
    trace.set_tracer_provider(provider)
    with (OUT / "spans.jsonl").open("w") as file:
        exporter = ConsoleSpanExporter(out=file, formatter=lambda span: span.to_json(indent=None) + "\n")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        with trace.get_tracer("harbour").start_as_current_span("watch"):
            calls()
        provider.shutdown()


main()
