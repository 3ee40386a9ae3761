"""References: plain Python that says what the engines have to find."""
