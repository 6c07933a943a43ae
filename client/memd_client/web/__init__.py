"""A page to see what is remembered: a small web server for its owner alone, which asks the daemon over its socket."""
