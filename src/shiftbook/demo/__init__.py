"""The demonstration: a long run of an order desk, killed in the middle of actions, resumed, checked."""
