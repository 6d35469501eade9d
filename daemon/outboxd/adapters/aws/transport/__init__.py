"""Carries prepared requests of the AWS SDK over keep-alive connections of our own.

Half of what the SDK spends on a call to SQS goes into urllib3 and http.client; the numbers are in
docs/architecture.md. Signing, retries, errors and typed exceptions stay the SDK's.
"""
