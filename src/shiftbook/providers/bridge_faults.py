"""What pydantic-ai raises, as a `ProviderFault` in one sentence. Pure but for reading the error.

pydantic-ai sorts its vendors' errors by what can be done about them, and where it did, its word decides
whether the same request may succeed later; `x-should-retry` comes before it, the status behind it. The wait
is the vendor's header, or what pydantic-ai read out of the body. No live object is carried along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

from shiftbook.errors import AgentMistake, AgentUnusable, ProviderFault
from shiftbook.providers.faults import fault_of, retry_after_ms, struck
from shiftbook.providers.once import sent_again

if TYPE_CHECKING:
    from pydantic_ai.exceptions import ModelAPIError


class _Answered(Exception):
    """An answer with a status, in the shape in which the SDKs raise it and `fault_of` reads it."""

    def __init__(self, words: str, status: int, body: object, headers: Mapping[str, str]) -> None:
        super().__init__(words)
        self.status_code = status
        self.body = body
        self.response = SimpleNamespace(headers=headers)


def bridged_fault(error: Exception, who: str, secrets: Sequence[str], now_ms: int) -> Exception:
    """The fault that an exception within a bridge is; what the agent's author has to mend stays a mistake."""
    from pydantic_ai.exceptions import (
        ModelAPIError,
        ModelConnectionError,
        ModelHTTPError,
        ModelRequestTimeout,
        ModelTimeoutError,
        UnexpectedModelBehavior,
        UserError,
    )

    if isinstance(error, ProviderFault | AgentMistake | AgentUnusable):
        return error
    if sent_again(error):
        return ProviderFault(
            f"{who}: the request was refused or sent elsewhere, and the client's own second one was stopped.",
            retryable=False,
        )
    if isinstance(error, UserError):
        return AgentMistake(f"{who} cannot be asked like this: {struck(str(error), secrets)}")
    if isinstance(error, ModelTimeoutError | ModelRequestTimeout):
        return ProviderFault(f"{who} did not answer in time.", retryable=True)
    if isinstance(error, ModelConnectionError):
        cause = error.__cause__ or error
        what = struck(f"{type(cause).__name__}: {cause}", secrets)
        return ProviderFault(f"{who}: the connection failed ({what}).", retryable=True)
    if isinstance(error, ModelHTTPError):
        headers = error.headers or {}
        told = _Answered(error.message, error.status_code, error.body, headers)
        fault = fault_of(told, who, secrets=secrets, now_ms=now_ms)
        wait = retry_after_ms(headers, now_ms)
        if wait is None and error.retry_after is not None:
            wait = round(error.retry_after * 1_000)
        return ProviderFault(
            str(fault), retryable=_retryable(error, fault), retry_after_ms=wait, status=error.status_code
        )
    if isinstance(error, ModelAPIError):
        words = struck(error.message, secrets)
        return ProviderFault(f"{who} broke the reply off: {words}", retryable=_sorted_as(error) is not False)
    if isinstance(error, UnexpectedModelBehavior):
        what = struck(error.message, secrets)
        return ProviderFault(f"{who}: the reply could not be read ({what}).", retryable=True)
    return fault_of(error, who, secrets=secrets, now_ms=now_ms)


def _retryable(error: ModelAPIError, fault: ProviderFault) -> bool:
    wish = getattr(error, "provider_retry_hint", None)
    sorted_as = _sorted_as(error)
    if isinstance(wish, bool):
        return wish
    return fault.retryable if sorted_as is None else sorted_as


def _sorted_as(error: ModelAPIError) -> bool | None:
    """Whether pydantic-ai holds that the request may succeed later, None where it does not say."""
    from pydantic_ai.exceptions import (
        ModelQuotaExceededError,
        ModelRateLimitError,
        ModelRequestRejectedError,
        ModelUnavailableError,
    )

    if isinstance(error, ModelQuotaExceededError | ModelRequestRejectedError):
        return False
    if isinstance(error, ModelRateLimitError | ModelUnavailableError):
        return True
    return None
