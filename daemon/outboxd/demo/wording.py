"""Numbers with their nouns, for people."""


def counted(number: int, noun: str) -> str:
    """The number and its noun, which takes an s unless there is one.

    >>> counted(1, "kill"), counted(0, "kill")
    ('1 kill', '0 kills')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def flow_title(name: str) -> str:
    """A flow's name in JSON, as people read it.

    >>> flow_title("emails_sent"), flow_title("orders_paid")
    ('e-mails sent', 'orders paid')
    """
    return name.replace("_", " ").replace("emails", "e-mails")
