"""What a function closes over: found, guarded, listed, and looked at again by each call."""
