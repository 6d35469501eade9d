"""Invoices: a PDF in S3 for each order that has been paid.

`decisions` says whether there is anything to write, `document` turns the facts into bytes, `store`
puts them into the bucket, `generate` is the handler that does all three.
"""

from handlers.invoices.generate import GenerateInvoice

__all__ = ["GenerateInvoice"]
