"""How a kernel runs on this CPU: order, lanes, tiles, row blocking, memory traffic."""
