"""How a plan runs: programs, the code that is kept of them, the words of a plan and the native
function that reads them, callbacks, interrupts."""
