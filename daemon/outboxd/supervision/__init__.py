"""The supervisor: starts, watches, restarts and stops children, and routes between them."""
