"""Whether memd keeps what it must not tell, while somebody tries to have it told."""
