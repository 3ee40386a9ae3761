"""Report: ranks and what they come to, as a table, a file and a page."""
