"""Event patterns and filter policies: what EventBridge and SNS have in common."""
