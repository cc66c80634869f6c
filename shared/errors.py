"""The one error type that a user is meant to see."""


class ReplicationError(Exception):
    """Something the user can act on: one clear sentence, and what to do about it.

    Stage programs print it as ``error: …`` without a traceback and exit with status 2.
    """
