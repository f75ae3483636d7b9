"""Where a provider's key comes from, and the one sentence when there is none.

A key is given, or read from the environment when the provider is made ready; it is in no message, no
setting and no journal. With an address of its own a provider does not fall back on the vendor's usual
variable: the key of one vendor must not be sent to another.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from shiftbook.errors import AgentUnusable

NO_KEY = "none"
"""What is sent where an endpoint of one's own needs no key."""


def find_key(who: str, *, given: str | None, variable: str | None, usual: str, base_url: str | None) -> str:
    """The key to send. Raises `AgentUnusable` where one is needed and none is there."""
    if given is not None:
        return given
    if variable is None and base_url is not None:
        return NO_KEY
    name = variable or usual
    found = os.environ.get(name, "").strip()
    if not found:
        raise AgentUnusable(f"{who} needs a key: set {name} in the environment, or give api_key=.")
    return found


def checked_address(base_url: str | None) -> str | None:
    """The address, refused when it holds a password, which would end up in messages."""
    if base_url is not None and urlsplit(base_url).password is not None:
        raise AgentUnusable("The base_url holds a password: give the key by api_key= or key_env= instead.")
    return base_url
