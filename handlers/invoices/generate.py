"""The handler that writes invoices."""

from typing import assert_never

from handlers.events import GenerateInvoicePdf
from handlers.invoices.decisions import Never, NotYet, Write, decide
from handlers.invoices.document import render
from handlers.invoices.invoice import Invoice, seller_of
from handlers.invoices.orders import Orders
from handlers.invoices.store import InvoiceStore
from handlers.waiting import later
from outboxd import Context, Event, Reject

GENERATE = "invoice.generate"
"""This handler's name in the configuration."""


class GenerateInvoice:
    """Stores the invoice of a paid order as `invoices/<year>/<month>/<order>.pdf`.

    Registered with `inbox = "after"`: a crash between the upload and the mark repeats the upload,
    which puts the same bytes under the same key. For that reason it leaves no row in shop.effects
    either, which counts what happens in transactions: the object in the bucket is its trace. No
    transaction is open while S3 is called. It may take half a minute: give it more
    `timeout_seconds` than the default.

    An order that was paid and is cancelled by now has its invoice all the same, for the payment
    that was taken; `payment.process` asks for it whichever of the two came first.
    """

    def __init__(
        self,
        *,
        database_url: str,
        bucket: str,
        seller: str,
        tax_number: str | None = None,
        region: str | None = None,
        endpoint_url: str | None = None,
    ) -> None:
        """`seller` is a text of lines, the name first, then the address. `endpoint_url` is for an
        S3 that is not Amazon's own. Credentials come from the environment, as for everything of
        AWS. Raises ValueError for a mistake."""
        if bucket == "":
            raise ValueError("`bucket` is empty: name the bucket that keeps the invoices")
        # "${NAME:-}" offers an option to the environment, which leaves it empty.
        self._seller = seller_of(seller, tax_number or None)
        self._store = InvoiceStore(bucket, region=region or None, endpoint_url=endpoint_url or None)
        self._orders = Orders(database_url, GENERATE)

    def __call__(self, job: Event[GenerateInvoicePdf], context: Context) -> None:
        order_id = job.payload.order_id
        decision = decide(order_id, self._orders.find(order_id))
        match decision:
            case Write(invoice=invoice):
                self._write(invoice, context)
            case NotYet(reason=reason):
                raise later(reason, context)
            case Never(reason=reason):
                raise Reject(reason)
            case _:
                assert_never(decision)

    def close(self) -> None:
        """Close its connections; for tests, as a handler lives as long as its process."""
        self._store.close()
        self._orders.close()

    def _write(self, invoice: Invoice, context: Context) -> None:
        document = render(invoice, self._seller)
        self._store.put(
            invoice.key,
            document,
            file_name=f"{invoice.number}.pdf",
            seconds_left=context.seconds_left(),
        )
        context.logger.info("invoice stored", extra={"key": invoice.key, "bytes": len(document)})
