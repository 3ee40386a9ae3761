"""Native calls of programs on a GPU: no Python between the call and the launch of a graph."""
