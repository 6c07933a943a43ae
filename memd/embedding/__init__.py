"""Running embedding providers, which agents with equal settings share, and the queues of what waits for them."""
