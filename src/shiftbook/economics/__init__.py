"""What a prompt costs: vendors' token counts in one form, their cache rules, prices, and the closed forms.

Everything here is a plain function of its arguments; times are given, never read. It refuses to turn what a
vendor did not say, or what a price list does not know, into a zero.
"""
