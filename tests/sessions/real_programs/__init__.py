"""The readers of sessions held against files that the real programs wrote, on this machine.

Each program is installed into an environment of its own, pointed at the provider server on loopback, and
given a scripted conversation. The server knows every request that it answered; what our reader finds in the
program's files must be the same. `make real-programs` runs it. It is no part of the tests, because it
installs what others publish: what was learnt stands there as an invented fixture.
"""
