"""What recorded sessions say of their prompts: how they grew, what they cost, what the cache did for them.

Plain functions over rows of requests (`sessions.requests`); the faces read files and print. Refused:
guessing. A count that the file does not have is None here too, and a sum without it is not known.
"""
