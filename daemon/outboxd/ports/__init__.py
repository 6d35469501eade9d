"""What actors may rely on: each port states its promise, each adapter keeps it."""
