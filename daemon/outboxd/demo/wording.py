"""Numbers with their nouns, for people."""


def counted(number: int, noun: str) -> str:
    """The number and its noun, which takes an s unless there is one.

    >>> counted(1, "kill"), counted(0, "kill")
    ('1 kill', '0 kills')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
