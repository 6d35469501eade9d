"""The operations of EventBridge."""
