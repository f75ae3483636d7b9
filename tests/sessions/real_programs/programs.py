"""The programs, with the versions that are taken and the reasons for what cannot be equal."""

from __future__ import annotations

from tests.sessions.real_programs.program import Environment, Program
from tests.sessions.real_programs.scripts import (
    claude,
    codex,
    codex_old,
    compacts,
    graded,
    openhands,
    piers,
    piers_and_clerk,
    probed,
    probes,
    shell,
    threads,
    three,
)

AGENTS = Environment("agents", "pip", ("openai-agents>=0.24,<0.25", "sqlalchemy>=2.1,<3"))
LANGGRAPH = Environment(
    "langgraph",
    "pip",
    (
        "langgraph>=1.2,<2",
        "langgraph-checkpoint-sqlite>=3.1,<4",
        "langchain-openai>=1.7,<2",
        "langchain-anthropic>=1.7,<2",
    ),
)
INSPECT = Environment("inspect", "pip", ("inspect-ai>=0.3.285,<0.4", "openai>=3.57,<4", "anthropic>=2.14,<3"))
OTEL = Environment(
    "otel",
    "pip",
    (
        "opentelemetry-sdk>=1.45,<2",
        # 2.4b0 needs a newer helper package than there is; 2.3b0 an old wrapt, and httpx without naming it.
        "opentelemetry-instrumentation-openai-v2==2.3b0",
        "wrapt<2",
        "httpx>=0.28,<1",
        "opentelemetry-instrumentation-anthropic>=0.62,<1",
        "openai>=3.57,<4",
        "anthropic>=2.14,<3",
    ),
)
OTEL_OLD = Environment(
    "otel-old",
    "pip",
    (
        "opentelemetry-instrumentation-anthropic==0.40.*",
        "opentelemetry-instrumentation-openai==0.40.*",
        "opentelemetry-sdk<1.35",
        "anthropic<0.60",
        "openai<2",
        "httpx<1",
    ),
)
MINI = Environment("mini", "pip", ("mini-swe-agent>=2.4,<3",))
OPENHANDS = Environment(
    "openhands", "pip", ("openhands-sdk>=1.58,<2", "openhands-tools>=1.58,<2"), python=(3, 12)
)
HARBOR = Environment("harbor", "pip", ("harbor>=0.26,<0.27",), python=(3, 12))
SDKS = Environment("sdks", "pip", ("openai>=3.57,<4", "anthropic>=2.14,<3"))
CODEX = Environment("codex", "npm", ("@openai/codex@0",))
CODEX_OLD = Environment("codex-old", "npm", ("@openai/codex@0.80",))
CLAUDE = Environment("claude", "npm", ("@anthropic-ai/claude-code@2",))
VERCEL = Environment("vercel", "npm", ("ai@6", "@ai-sdk/openai@3", "zod@4"))

CODEX_WAIVED = ("field", "tool choice", "item field", "tool field")
ESTIMATED = "the program stores no usage, instructions or tools: estimated over what it shows"
NO_COMPACTION = "the format tells no compaction apart"

PROGRAMS: tuple[Program, ...] = (
    Program(
        "agents-advanced",
        "openai-agents",
        AGENTS,
        "agents_sdk.py",
        piers_and_clerk,
    ),
    Program(
        "agents-plain",
        "openai-agents",
        AGENTS,
        "agents_sdk_plain.py",
        piers,
        unequal=dict.fromkeys(("prompt", "output", "reasoning"), ESTIMATED),
    ),
    Program("langgraph", "langgraph", LANGGRAPH, "langgraph_threads.py", threads, kinds={"subagent": 2}),
    Program("langgraph-delta", "langgraph", LANGGRAPH, "langgraph_delta.py", piers),
    Program(
        "inspect-openai",
        "inspect",
        INSPECT,
        "inspect_task.py",
        probed,
        arguments=("openai", "eval"),
        aside=probes,
        kinds={"subagent": 4, "other": 2},
    ),
    Program(
        "inspect-anthropic",
        "inspect",
        INSPECT,
        "inspect_task.py",
        graded,
        arguments=("anthropic", "json"),
        anthropic=True,
        kinds={"subagent": 4, "other": 2},
    ),
    Program(
        "otel-old-openai",
        "otel",
        OTEL_OLD,
        "otel_spans.py",
        three,
        arguments=("openai",),
        unequal=dict.fromkeys(
            ("prompt", "read", "output"), "this version writes no usage of the streamed call: it is missing"
        ),
    ),
    Program(
        "otel-old-anthropic",
        "otel",
        OTEL_OLD,
        "otel_spans.py",
        three,
        arguments=("anthropic",),
        anthropic=True,
    ),
    Program(
        "otel-openai",
        "otel",
        OTEL,
        "otel_spans.py",
        three,
        arguments=("openai_v2",),
        unequal={"read": "this version writes no count of cached tokens"},
    ),
    Program("otel-anthropic", "otel", OTEL, "otel_spans.py", three, arguments=("anthropic",), anthropic=True),
    Program(
        "codex",
        "codex",
        CODEX,
        "codex_exec.py",
        codex,
        kinds={"subagent": 1, "compaction": 1},
        compactions=1,
        measured="sessions",
        waived=CODEX_WAIVED,
    ),
    Program(
        "codex-old",
        "codex",
        CODEX_OLD,
        "codex_exec.py",
        codex_old,
        kinds={"compaction": 1},
        unequal={"written": "this version stores no count of cache writes"},
        compactions=1,
        measured="sessions",
        waived=CODEX_WAIVED,
    ),
    Program(
        "claude",
        "claude-code",
        CLAUDE,
        "claude_code.py",
        claude,
        kinds={"subagent": 2},
        compactions=1,
        aside=compacts,
        measured="projects",
        anthropic=True,
    ),
    Program("mini-swe-chat", "mini-swe-agent", MINI, "mini_swe_agent.py", shell, arguments=("litellm",)),
    Program(
        "mini-swe-responses",
        "mini-swe-agent",
        MINI,
        "mini_swe_agent.py",
        shell,
        arguments=("litellm_response",),
        waived=("item field",),
    ),
    Program(
        "openhands",
        "openhands",
        OPENHANDS,
        "openhands_conversation.py",
        openhands,
        kinds={"subagent": 2, "compaction": 1},
        compactions=1,
        waived=("second answer", "tool choice"),
    ),
    Program(
        "vercel",
        "vercel-ui",
        VERCEL,
        "vercel_messages.mjs",
        piers,
        unequal=dict.fromkeys(("prompt", "read", "output", "reasoning"), ESTIMATED),
    ),
    Program("vercel-usage", "vercel-ui", VERCEL, "vercel_messages.mjs", piers, arguments=("told",)),
    Program("sdk-chat", "openai-chat", SDKS, "sdk_logs.py", piers, arguments=("chat",)),
    Program("sdk-responses", "openai-responses", SDKS, "sdk_logs.py", piers, arguments=("responses",)),
    Program(
        "sdk-anthropic",
        "anthropic-messages",
        SDKS,
        "sdk_logs.py",
        piers,
        arguments=("anthropic",),
        anthropic=True,
    ),
    Program(
        "harbor-codex",
        "atif",
        HARBOR,
        "harbor_trajectory.py",
        codex,
        arguments=("codex",),
        beside=CODEX,
        kinds={"subagent": 1, "compaction": 1},
        compactions=1,
        measured="atif",
        waived=CODEX_WAIVED,
        unequal=dict.fromkeys(("kinds", "compactions"), NO_COMPACTION),
    ),
    Program(
        "harbor-claude",
        "atif",
        HARBOR,
        "harbor_trajectory.py",
        claude,
        arguments=("claude",),
        beside=CLAUDE,
        kinds={"subagent": 2},
        compactions=1,
        aside=compacts,
        measured="atif",
        unequal={"compactions": NO_COMPACTION},
        anthropic=True,
    ),
)
