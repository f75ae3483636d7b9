"""A server that says what it was told to say, letter by letter: what the SDK would refuse to send.

    python raw.py '["raw text of the first result", ...]' [stray]

Each item is the text of a whole result, written into the answer as it is. "stray" prints a line that is no
message before each answer.
"""

from __future__ import annotations

import json
import sys

TOOL = {
    "name": "say",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    "annotations": {"readOnlyHint": True},
}


def main() -> None:
    """Answer line by line until the input ends."""
    script = json.loads(sys.argv[1])
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        method = message["method"]
        if method == "initialize":
            result = json.dumps(
                {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "raw", "version": "1"},
                }
            )
        elif method == "tools/list":
            result = json.dumps({"tools": [TOOL, {"name": "no schema", "inputSchema": {"type": "string"}}]})
        elif method == "tools/call":
            result = script.pop(0)
        else:
            error = {"code": -32601, "message": "unknown"}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
            continue
        if "stray" in sys.argv:
            print("Listening ...", flush=True)
        print(f'{{"jsonrpc":"2.0","id":{message["id"]},"result":{result}}}', flush=True)


if __name__ == "__main__":
    main()
