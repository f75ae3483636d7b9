"""An address of a PostgreSQL database, read so that its password is never told to anybody.

libpq's own messages quote what they cannot parse, and what they cannot parse is now and then half of a
password. So an address is read here, refused in words that quote nothing, and named without its secrets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import ModuleType
from urllib.parse import urlsplit

from shiftbook.errors import StoreUnusable

SCHEMES = ("postgresql://", "postgres://")

DEFAULTS = {
    "connect_timeout": "10",
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "application_name": "shiftbook",
}
"""What libpq is told where the address says nothing: a host that is cut off shows within half a minute
(seconds; `tcp_user_timeout` in milliseconds)."""

_SERVER = re.compile(
    r"(?!:memory:)(?:.*://|//|\s*(?:postgres|pgsql|psql)\w*:|[^/\s]*:[^/]*@"
    r"|(?:.*\s)?(?:host|hostaddr|dbname|user|password)\s*=)",
    re.IGNORECASE | re.DOTALL,
)
"""How an address looks that is no path, and is perhaps the mistyped one of a server."""


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where a database is: its name towards people, and what libpq is given, password and all."""

    name: str
    parameters: dict[str, str] = field(repr=False)


def is_postgres(address: str) -> bool:
    """Whether an address names a PostgreSQL server."""
    return address.startswith(SCHEMES)


def names_a_server(address: str) -> bool:
    """Whether an address is meant for a server, well formed or not.

    Then it may hold a password, and is neither the name of a file nor told to anybody.
    """
    return _SERVER.match(address) is not None


def parse_address(address: str) -> PostgresAddress:
    """Read an address; `StoreUnusable` when it is none, without a word of what stands in it."""
    psycopg = driver()
    refused = StoreUnusable(
        "The PostgreSQL address cannot be read: it is postgresql://USER:PASSWORD@HOST:PORT/DATABASE, and "
        "signs such as @ : / ? # % in a user's name or a password are written as %40 %3A %2F %3F %23 %25."
    )
    # What libpq takes for a host or a database may be the rest of a password that was not quoted.
    if address.count("@") > 1 or "\0" in address:
        raise refused
    try:
        parts = urlsplit(address)
        if parts.fragment or "@" in parts.path or "@" in parts.query:
            raise refused
        given = psycopg.conninfo.conninfo_to_dict(address)
    except (ValueError, psycopg.Error):
        raise refused from None
    ports = str(given.get("port", ""))
    if not all(port.isdigit() or not port for port in ports.split(",")):
        raise refused
    parameters = {**DEFAULTS, **{key: str(value) for key, value in given.items()}, "client_encoding": "UTF8"}
    return PostgresAddress(_name(parameters), parameters)


def _name(parameters: dict[str, str]) -> str:
    user = parameters.get("user")
    host = parameters.get("host") or parameters.get("hostaddr") or "localhost"
    port = parameters.get("port")
    database = parameters.get("dbname") or user or ""
    at = f"{user}@" if user else ""
    if host.startswith(("/", "@")):
        return f"postgresql://{at}/{database}?host={host}" + (f"&port={port}" if port else "")
    return f"postgresql://{at}{host}{f':{port}' if port else ''}/{database}"


def driver() -> ModuleType:
    """psycopg; `StoreUnusable` when it is not installed."""
    try:
        import psycopg
    except ImportError as missing:
        raise StoreUnusable(
            "A PostgreSQL journal needs the package psycopg, which cannot be loaded here "
            f"({missing.msg.splitlines()[0]:.80}); install shiftbook[postgres]."
        ) from None
    return psycopg
