"""The query protocol: forms for requests, XML for answers, and JSON in between."""
