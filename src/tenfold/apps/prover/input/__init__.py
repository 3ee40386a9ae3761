"""Input: files, generators and names turned into a program and its queries."""
