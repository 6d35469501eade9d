"""SNS behind the ports, through boto3, which is synchronous: every call runs in a thread."""
