"""OpenAI's error bodies, the same for both of its wires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shiftbook.testing.server.rule import Refusal
from shiftbook.testing.server.signatures import Stale

REQUEST_ID = "x-request-id"
KINDS: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "invalid_request_error",
    403: "permission_error",
    404: "invalid_request_error",
    413: "invalid_request_error",
    429: "requests",
}
CODES: Mapping[int, str] = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


def error_body(refusal: Refusal, _request_id: str) -> dict[str, Any]:
    """The vendor's error body."""
    return {
        "error": {
            "message": refusal.message,
            "type": refusal.kind,
            "param": refusal.param,
            "code": refusal.code,
        }
    }


def stale_refusal(found: Stale) -> Refusal:
    """What the vendor says of reasoning that may not stand where it stands."""
    reasons = {
        "edited": "Encrypted content could not be decrypted or parsed.",
        "other prefix": "Encrypted content belongs to a different conversation prefix.",
        "other model": "Encrypted content was produced by a different model.",
    }
    return Refusal(
        f"The encrypted content for item {found.reasoned.id} could not be verified. "
        f"Reason: {reasons[found.why]}",
        code="invalid_encrypted_content",
        rule=f"reasoning of {found.why}" if found.why != "edited" else "reasoning edited",
    )
