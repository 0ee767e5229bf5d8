"""Hours of mixed work on shared tables, with kills; then a model counts what must be there. See docs/soak.md.

`__main__.py` starts and kills the processes: `driver.py` (Spark), `core_writer.py` (no Spark) and `reader.py`. Each
keeps a `journal.py`. `model.py` replays the log with the journals' effects and compares every version that was read.
`resources.py` decides whether memory and descriptors stayed flat.
"""
