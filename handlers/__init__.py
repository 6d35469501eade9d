"""The shop: the package that outboxd is shown with, and a model for one of your own."""
