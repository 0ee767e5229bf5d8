"""Checks 5 and 6: the result of a write when the reply is lost, late or unusual.

For a store with a service, the checks use a proxy between the client and the service. For a store of files, they let
system calls fail in a separate process.
"""

from . import lost_replies, reply_forms

__all__ = ["lost_replies", "reply_forms"]
