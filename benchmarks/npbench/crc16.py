"""CRC-16-CCITT, bit by bit."""

import numpy as np

import tenfold as tn


def crc16(data, poly=0x8408):
    def byte(crc, value):
        crc ^= value & 0xFF
        for _ in range(8):
            crc = np.where(crc & 1, (crc >> 1) ^ poly, crc >> 1)
        return crc, ()

    crc = ~tn.scan(byte, 0xFFFF, data.astype(np.int64))[0] & 0xFFFF
    return ((crc << 8) | (crc >> 8)) & 0xFFFF
