"""From a call to a plan: arguments, signatures, containers taken apart, and the native way in."""
