"""What the site of the documentation needs beside its pages: the drawings of interleavings, the style, a check."""
