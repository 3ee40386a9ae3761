"""Plans bound to a device, and carried out there."""
