"""What a person who looks at the daemon sees first: a page, and the same as JSON.

Everything is made of what the supervisor has heard: nobody is asked for it.
"""
