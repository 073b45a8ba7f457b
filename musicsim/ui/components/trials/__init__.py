"""The view of blind trials: a session's questions, buttons and cards with keys, and songs without names."""
