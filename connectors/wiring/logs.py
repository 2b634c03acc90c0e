"""How processes log: roles in lines with fields, verbs whose output is a table only their warnings."""

import logging
import os
import sys

import structlog


def log_as_lines() -> None:
    """Log events with their fields, a line each, to standard error."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
        ],
        logger_factory=structlog.WriteLoggerFactory(file=os.fdopen(os.dup(2), "w", 1)),
    )


def quiet() -> None:
    """Log nothing below a warning, for verbs whose output is a table."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )
