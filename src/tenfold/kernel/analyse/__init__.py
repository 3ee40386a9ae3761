"""Facts about kernels: functions of a kernel alone, for every backend."""
