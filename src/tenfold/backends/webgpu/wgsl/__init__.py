"""Legal instructions as WGSL."""
