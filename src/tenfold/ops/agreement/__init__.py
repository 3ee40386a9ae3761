"""What the rule of agreement knows of ops: the rules that the columns `error` and `spread` name."""
