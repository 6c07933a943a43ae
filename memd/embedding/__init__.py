"""What embeds: providers that are alive, shared by the agents that want the same."""
