"""E-mails into a Maildir on this machine."""

import mailbox
from email.message import EmailMessage
from pathlib import Path
from threading import Lock

from handlers.notifications.transports import Maildir


class MaildirTransport:
    """A message is on disk when it is sent; a file system that fails raises OSError, a retry."""

    def __init__(self, options: Maildir) -> None:
        self._maildir = _open(Path(options.mail_directory))
        self._lock = Lock()

    def send(self, message: EmailMessage, *, sender: str, seconds_left: float) -> None:
        with self._lock:  # the file names of `mailbox` are unique to a process, not to a thread
            self._maildir.add(message)


def _open(folder: Path) -> mailbox.Maildir:
    # Not `create=True`: of two processes that start together, one would fail.
    for name in ("tmp", "new", "cur"):
        (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    return mailbox.Maildir(folder, create=False)
