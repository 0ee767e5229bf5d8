"""Every key of Spark's configuration that tablelog knows, each declared once.

- `declarations`: the keys of Delta and of tablelog that change what tablelog does.
- `spark_own`: the keys of Spark itself that tablelog reads, or sets for a query of its own.
- `unsupported`: keys of Delta that have no effect here, with the reason.

`docs/settings.md` is made of these (`reference`), and so is the warning about keys without effect.
"""
