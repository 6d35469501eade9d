"""Handlers: found by name, inspected once, run within their inbox mode."""

from outboxd.adapters.handlers.loading import (
    LoadedHandler,
    extend_import_path,
    handler_problems,
    load_handlers,
)
from outboxd.adapters.handlers.running import Runner

__all__ = ["LoadedHandler", "Runner", "extend_import_path", "handler_problems", "load_handlers"]
