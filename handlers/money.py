"""Money as people read it; everywhere else it is an integer of the currency's minor unit."""

NO_DECIMALS = frozenset({"CLP", "ISK", "JPY", "KRW", "PYG", "UGX", "VND", "XAF", "XOF", "XPF"})
THREE_DECIMALS = frozenset({"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"})
"""Currencies of ISO 4217 whose minor unit is not a hundredth."""


def amount(minor: int, currency: str) -> str:
    """An amount as customers write it: SGD 53.50, JPY 5350."""
    decimals = 0 if currency in NO_DECIMALS else 3 if currency in THREE_DECIMALS else 2
    whole, rest = divmod(minor, 10**decimals)
    return f"{currency} {whole}" + (f".{rest:0{decimals}}" if decimals else "")
