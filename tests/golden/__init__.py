"""What memd makes of a fixed corpus, tied to the numbers that stand for it in an index."""
