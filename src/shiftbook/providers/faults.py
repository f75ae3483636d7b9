"""What an official SDK raises, as a `ProviderFault` in one sentence. Pure but for reading the error.

    400 404 413 422   the request cannot succeed as it is            not retried
    401 402 403       the key, the bill, the permission              not retried
    408 409 425       the same request may succeed later             retried
    429               later, unless the quota is used up             retried, after `retry-after`
    5xx, 529          the vendor's trouble                           retried, but 501 and 505
    no answer         connection, time-out, a stream cut short       retried

A vendor's own `x-should-retry` comes before the table. A fault reported in the middle of a stream has no
status of its own: its type or code stands for one. Keys never get into a message: the given ones are
struck, and everything that looks like one. No live object is carried along.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any

from shiftbook.errors import ProviderFault

STATUS_OF_TYPE: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    "server_is_overloaded": 529,
}
"""The status that an error's type or code stands for, where a stream reports it."""

ALWAYS_REFUSED = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
"""Codes under 429 that waiting does not help."""

RETRYABLE = frozenset({408, 409, 425, 429})
NEVER = frozenset({501, 505})
MESSAGE_CHARS_MAX = 600
HINTS: Mapping[int, str] = {
    401: "The key was not accepted; set a valid one.",
    402: "The account cannot be billed; look at the vendor's console.",
    403: "The key may not use this; look at its permissions.",
    404: "Check the model's name and the address.",
}
_KEY = re.compile(r"\b(?:sk|pk|rk|key)-[A-Za-z0-9_*.-]{4,}|\bBearer\s+\S+", re.ASCII)
_TRANSPORT = frozenset({"httpx", "httpx2", "httpcore", "httpcore2", "anyio", "ssl", "h11", "h2"})


def fault_of(error: Exception, who: str, *, secrets: Sequence[str] = (), now_ms: int = 0) -> ProviderFault:
    """The fault that an SDK's exception is. `who` names the provider; `now_ms` is for a date to wait for."""
    if isinstance(error, ProviderFault):
        return error
    body = getattr(error, "body", None)
    status = getattr(error, "status_code", None)
    response = getattr(error, "response", None)
    headers: Mapping[str, str] = getattr(response, "headers", None) or {}
    if isinstance(status, int) and status >= 400:
        return _answered(who, status, body, str(error), headers, secrets, now_ms)
    if body is not None:
        return reported(body, who, secrets=secrets)
    if _has_name(error, "APIResponseValidationError") or isinstance(error, ValueError | KeyError):
        what = struck(f"{type(error).__name__}: {error}", secrets)
        return ProviderFault(f"{who}: the reply could not be read ({what}).", retryable=True)
    if _has_name(error, "APITimeoutError") or isinstance(error, TimeoutError):
        return ProviderFault(f"{who} did not answer in time.", retryable=True)
    if _is_transport(error):
        cause = error.__cause__ or error
        what = struck(f"{type(cause).__name__}: {cause}", secrets)
        return ProviderFault(f"{who}: the connection failed ({what}).", retryable=True)
    what = struck(f"{type(error).__name__}: {error}", secrets)
    return ProviderFault(f"{who}: the request could not be made ({what}).", retryable=False)


def reported(body: object, who: str, *, secrets: Sequence[str] = ()) -> ProviderFault:
    """The fault that a vendor reports in the middle of a stream, or as a reply's outcome."""
    told = _error_in(body)
    kind, code = str(told.get("type") or ""), str(told.get("code") or "")
    status = STATUS_OF_TYPE.get(code) or STATUS_OF_TYPE.get(kind)
    if status is None:
        is_refused = code.startswith("invalid_") or kind.startswith("invalid_")
        words = struck(_words(told, ""), secrets)
        return ProviderFault(f"{who} broke the reply off: {words}", retryable=not is_refused)
    return _answered(who, status, body, "", {}, secrets, 0)


def cut_short(who: str) -> ProviderFault:
    """The stream ended before the reply did."""
    return ProviderFault(f"{who}: the stream ended before the reply did.", retryable=True)


def retry_after_ms(headers: Mapping[str, str], now_ms: int) -> int | None:
    """The wait that the vendor wishes, in milliseconds: as milliseconds, seconds, or a date.

    A date is held against the answer's own `Date`, where there is one, since clocks differ.
    """
    for name, factor in (("retry-after-ms", 1), ("retry-after", 1_000)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            wait = float(text) * factor
        except ValueError:
            continue
        if 0 <= wait < 1e12:
            return round(wait)
    at = _date_ms(headers.get("retry-after"))
    if at is None:
        return None
    sent = _date_ms(headers.get("date"))
    return max(0, at - (sent if sent is not None else now_ms))


def struck(text: str, secrets: Sequence[str]) -> str:
    """The text in one line, without keys, at a length that can be shown."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[key]")
    text = " ".join(_KEY.sub("[key]", text).split())
    return text if len(text) <= MESSAGE_CHARS_MAX else f"{text[:MESSAGE_CHARS_MAX]}..."


def _answered(
    who: str,
    status: int,
    body: object,
    words: str,
    headers: Mapping[str, str],
    secrets: Sequence[str],
    now_ms: int,
) -> ProviderFault:
    told = _error_in(body)
    retryable = (status in RETRYABLE or status >= 500) and status not in NEVER
    if told.get("code") in ALWAYS_REFUSED or told.get("type") in ALWAYS_REFUSED:
        retryable = False
    wish = headers.get("x-should-retry")
    if wish in ("true", "false"):
        retryable = wish == "true"
    hint = f" {HINTS[status]}" if status in HINTS else ""
    return ProviderFault(
        f"{who} answered {status}: {struck(_words(told, words), secrets)}{hint}",
        retryable=retryable,
        retry_after_ms=retry_after_ms(headers, now_ms),
        status=status,
    )


def _error_in(body: object) -> Mapping[str, Any]:
    if isinstance(body, Mapping):
        inner = body.get("error")
        return inner if isinstance(inner, Mapping) else body
    return {"message": body} if isinstance(body, str) and body else {}


def _words(told: Mapping[str, Any], otherwise: str) -> str:
    message = told.get("message")
    kind = told.get("code") or told.get("type")
    words = message if isinstance(message, str) and message else otherwise or "no reason given"
    if not words.endswith((".", "!", "?")):
        words += "."
    return f"{words} ({kind})" if isinstance(kind, str) and kind != "error" else words


def _date_ms(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return round(parsedate_to_datetime(text).timestamp() * 1000)
    except (ValueError, TypeError, OverflowError):
        return None


def _has_name(error: Exception, name: str) -> bool:
    return any(kind.__name__ == name for kind in type(error).__mro__)


def _is_transport(error: Exception) -> bool:
    if isinstance(error, OSError) or _has_name(error, "APIConnectionError"):
        return True
    return any(kind.__module__.partition(".")[0] in _TRANSPORT for kind in type(error).__mro__)
