"""What a tenant agreed to pay for beyond its quota."""

from enum import StrEnum


class OverflowMode(StrEnum):
    """Whether a request beyond quota becomes overflow: never, only when it asks, or by itself."""

    NEVER = "never"
    ASK = "ask"
    AUTO = "auto"
