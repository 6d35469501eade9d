"""Others that do the same work, each in its best configuration, in environments of their own."""
