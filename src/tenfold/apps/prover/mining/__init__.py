"""Mining: rules learned from the facts of train, with confidences and supports."""
