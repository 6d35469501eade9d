"""structlog without rich, which it would import for tracebacks in colours where that is installed.

Four daemon processes in the demo, where rich draws the live picture, would each pay 4.6 MB and
45 ms for it (Python 3.11); structlog alone costs 1.6 MB and 25 ms.
"""

import sys

_MISSING = object()
_rich = sys.modules.get("rich", _MISSING)
if _rich is _MISSING:
    sys.modules["rich"] = None  # type: ignore[assignment]  # an import of it fails, as documented

import structlog  # noqa: E402

if _rich is _MISSING:
    del sys.modules["rich"]

__all__ = ["structlog"]
