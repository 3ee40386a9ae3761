"""Plans as files: sections of plain data under a checksum."""
