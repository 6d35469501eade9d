"""E-mails by SMTP (RFC 5321)."""

import smtplib
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import EmailMessage

from handlers.notifications.transports import MailAway, Smtp
from outboxd import Reject

LEAST_WAIT_SECONDS = 0.01
"""For an answer when the time is over: 0 would mean not to wait at all, and another error."""


class SmtpTransport:
    """A connection for each message: a server ends idle ones whenever it likes, and to find that
    out in the middle of a message leaves open whether it was taken."""

    def __init__(self, options: Smtp) -> None:
        self._options = options
        self._tls = ssl.create_default_context() if options.starttls else None
        # Asked for once: a slow name server would hold up each e-mail, and without any timeout.
        name = socket.getfqdn()
        self._name = name if "." in name else "[127.0.0.1]"

    def send(self, message: EmailMessage, *, sender: str, seconds_left: float) -> None:
        seconds = min(self._options.timeout_seconds, seconds_left)
        if seconds <= 0:
            raise MailAway("no time was left to send the e-mail")
        try:
            with self._connected(seconds) as smtp:
                smtp.send_message(message, from_addr=sender)
        except smtplib.SMTPRecipientsRefused as error:
            ((code, words),) = error.recipients.values()  # our messages have one
            raise self._refused(code, words) from error
        except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
            raise self._refused(error.smtp_code, error.smtp_error) from error
        except (smtplib.SMTPException, OSError) as error:
            raise self._away(_described(error)) from error

    @contextmanager
    def _connected(self, seconds: float) -> Iterator[smtplib.SMTP]:
        options = self._options
        smtp = _Connection(options.host, options.port, self._name, seconds)
        try:
            if self._tls is not None:
                smtp.starttls(context=self._tls)
            if options.username is not None and options.password is not None:
                smtp.login(options.username, options.password)
            yield smtp
            # The message is taken: a farewell that fails must not send it again.
            with suppress(smtplib.SMTPException, OSError):
                smtp.quit()
        finally:
            smtp.close()

    def _refused(self, code: int, words: bytes | str) -> Exception:
        """What an answer to the message itself means: 5xx is for ever, 4xx for now."""
        said = f"{code} {_text(words)}"
        if code >= 500:
            return Reject(f"the mail server refused the e-mail ({said})")
        return self._away(said)

    def _away(self, why: str) -> MailAway:
        where = f"{self._options.host}:{self._options.port}"
        return MailAway(f"the mail server at {where} did not take the e-mail: {why}")


class _Connection(smtplib.SMTP):
    """A conversation that is over in time: smtplib waits as long as this for each answer, and
    there are eight of them."""

    def __init__(self, host: str, port: int, name: str, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        super().__init__(host, port, name, timeout=seconds)

    def getreply(self) -> tuple[int, bytes]:
        if self.sock is not None:
            self.sock.settimeout(max(self._deadline - time.monotonic(), LEAST_WAIT_SECONDS))
        return super().getreply()


def _described(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPNotSupportedError) and "STARTTLS" in str(error):
        return "it offers no STARTTLS, and `starttls` is set"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {_text(error.smtp_error)}"
    return str(error) or type(error).__name__


def _text(words: bytes | str) -> str:
    text = words.decode(errors="replace") if isinstance(words, bytes) else words
    return " ".join(text.split())[:300]
