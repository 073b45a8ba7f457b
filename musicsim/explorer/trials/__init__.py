"""The kit of blind trials: random sides, tallies, rates and intervals. Answers are judgments in the library."""
