"""A run as text, and back: canonical JSON lines that keep the chain byte for byte.

A header, then each entry with its salt, its head and its payload as exact text, each blob before the first
entry that needs it, all inbox items, and an end that counts the lines and holds a digest over all of them, so
that a torn or altered file is noticed. docs/reference/format.md is the contract.

An import reads and checks every line before it writes anything. Then it opens the run, puts the inbox items
in, and appends all entries, blobs and moved items in one commit: the run is there whole or it has no entry.
What dies before that commit leaves a run without entries: nothing resumes or lists it, `verify` tells it, and
the same import takes it up again. The price is memory: an import holds the run that it reads.

Refused, with the line's number: what no export wrote. A foreign session is not an export.
"""

from shiftbook.transfer.copy import Copied, copy_run, runs_of
from shiftbook.transfer.export import export_run
from shiftbook.transfer.write import Imported, import_run

__all__ = ["Copied", "Imported", "copy_run", "export_run", "import_run", "runs_of"]
