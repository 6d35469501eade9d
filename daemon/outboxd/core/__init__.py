"""Pure decisions and plain data: no I/O, no clock of its own, no dice of its own."""
