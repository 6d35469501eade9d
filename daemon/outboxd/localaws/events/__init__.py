"""EventBridge: buses, rules and targets that are queues of this server, behind AWS JSON 1.1."""
