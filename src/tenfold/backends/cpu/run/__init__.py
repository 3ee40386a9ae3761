"""How a plan runs: its words, the native function that reads them, callbacks, interrupts."""
