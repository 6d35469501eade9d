"""The only place that imports boto3, psycopg, yoyo or a handler: everything the actors talk to."""
