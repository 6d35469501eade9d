"""What every AWS service has in common: how a client is set up, and what its errors mean."""
