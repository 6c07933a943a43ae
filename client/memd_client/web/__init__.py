"""A web page that shows the memory to its owner: a small server that asks the daemon over its socket."""
