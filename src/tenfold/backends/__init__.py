"""What runs kernels: one folder for each kind of device."""
