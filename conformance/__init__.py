"""Checks of what a store promises, for the stores of this project and for anyone's."""
