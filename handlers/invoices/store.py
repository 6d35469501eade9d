"""Where invoices are kept: a bucket of S3, or of what speaks like it."""

from typing import Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

CONNECT_SECONDS: Final = 2.0
READ_SECONDS: Final = 10.0

ATTEMPTS: Final = 2
"""The second is for a connection that S3 has closed meanwhile; the daemon tries again, later."""

LONGEST_SECONDS: Final = ATTEMPTS * (CONNECT_SECONDS + READ_SECONDS) + 1.0
"""What one upload may take, with the SDK's pause between two attempts."""

ELSEWHERE = frozenset({"PermanentRedirect", "AuthorizationHeaderMalformed", "301"})
"""Codes by which S3 says that the bucket is in another region."""


class NotStored(Exception):
    """The invoice is not in the bucket, or the answer was lost: store it again."""


class InvoiceStore:
    """One client for all threads, as boto3 allows. How invoices are encrypted, and how long they
    are kept, is the bucket's own setting."""

    def __init__(
        self,
        bucket: str,
        *,
        region: str | None = None,
        endpoint_url: str | None = None,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self._bucket = bucket
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=read_seconds,
            retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
            # The consumer's threads; beyond ten the SDK would throw connections away.
            max_pool_connections=16,
            # BUCKET.localhost is not known everywhere.
            s3={"addressing_style": "auto" if endpoint_url is None else "path"},
        )
        self._client = boto3.client(
            "s3", region_name=region, endpoint_url=endpoint_url, config=config
        )

    def put(self, key: str, document: bytes, *, file_name: str, seconds_left: float) -> None:
        """When this returns, the bucket has the document. Raises NotStored.

        `file_name` is what a browser suggests to whoever saves it.
        """
        if seconds_left < LONGEST_SECONDS:
            # A thread that is over its time takes its whole process down.
            raise NotStored(
                f"{key} was not stored: that may take {LONGEST_SECONDS:.0f} s, and only "
                f"{max(seconds_left, 0.0):.0f} s were left; a larger timeout_seconds helps"
            )
        try:
            self._client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=document,
                ContentType="application/pdf",
                ContentDisposition=f'inline; filename="{file_name}"',
            )
        except ClientError as error:
            code = error.response["Error"]["Code"]
            said = f"{code}: {error.response['Error'].get('Message', '')}"
            raise NotStored(explanation(code, said, self._bucket, key)) from error
        except BotoCoreError as error:
            raise NotStored(f"{key} was not stored in bucket {self._bucket}: {error}") from error

    def close(self) -> None:
        """Close its connections."""
        self._client.close()


def explanation(code: str, said: str, bucket: str, key: str) -> str:
    """What S3's refusal means for who reads of it, and what to do.

    No refusal is for ever: the document is right, and a bucket or a role can be mended while the
    job waits.
    """
    what = f"{key} was not stored in bucket {bucket} ({said})"
    if code == "AccessDenied":
        return f"{what}: allow s3:PutObject on {bucket}/invoices/* to the role of this process"
    if code == "NoSuchBucket":
        return f"{what}: create it, or correct the option `bucket`"
    if code in ELSEWHERE:
        return f"{what}: set the option `region` to that of the bucket"
    return what
