"""The result of a run as text, JSON, JUnit XML and HTML, and the table of all stores."""
