"""How deep JSON nests, without decoding it: decoders recurse, and that is the danger."""

import re

_ESCAPE = re.compile(rb"\\.")
_TEXT = re.compile(rb'"[^"]*"')
_NEITHER_BRACKET_NOR_QUOTE = bytes(set(range(256)) - set(b'[]{}"'))


def deeper_than(levels: int, encoded: bytes) -> bool:
    """Whether valid JSON has more than so many arrays and objects in one another.

    Most has fewer brackets than that altogether. Of the rest the brackets alone are kept, and the
    innermost pairs taken away, a level at a time.
    """
    if encoded.count(b"[") + encoded.count(b"{") <= levels:
        return False
    without_escapes = _ESCAPE.sub(b"", encoded) if b"\\" in encoded else encoded
    marks = without_escapes.translate(None, _NEITHER_BRACKET_NOR_QUOTE)
    # One kind of bracket from here on: pairs nest properly, since the JSON is valid.
    brackets = _TEXT.sub(b"", marks).translate(bytes.maketrans(b"{}", b"[]"))
    for _ in range(levels):
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return False
    return True
