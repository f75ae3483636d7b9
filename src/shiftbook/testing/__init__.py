"""Public aids for testing: simulated clock, conformance suites, doubles."""
