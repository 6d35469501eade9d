"""The variables that config/shop.toml wants, for tests that read it."""

PRODUCTION = {
    "DATABASE_URL": "postgresql://db/shop",
    "COURIER_URL": "https://courier.example",
    "COURIER_TOKEN": "secret",
    "WHATSAPP_URL": "https://whatsapp.example",
    "WHATSAPP_TOKEN": "secret",
    "PUSH_URL": "https://push.example",
    "PUSH_TOKEN": "secret",
    "SMTP_HOST": "mail.example",
    "INVOICE_BUCKET": "invoices",
}
