"""What every cell of the matrix runs, with its expected results as literals. `matrix.runs` starts it for each cell."""
