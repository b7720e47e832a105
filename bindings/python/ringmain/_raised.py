"""The logger "ringmain" gets what a callback raised, once."""

import logging

_log = logging.getLogger("ringmain")


def log(name: str, error: BaseException) -> None:
    _log.error("subscriber %r raised %s; further ones are only counted", name, type(error).__name__,
               exc_info=(type(error), error, error.__traceback__))
