"""EventBridge behind the ports, through boto3, which is synchronous: calls run in threads."""
