"""The rule of agreement: bounds, discrete values, and the judgement of one step."""
