"""The rules of this repository that a program can check. tools/tidy runs them all."""
