"""The streaming warehouse: tables and views that are kept as fresh as they can be (streaming warehouse paper).

Pure, but for what is live: the same scheduler is driven by a real clock and Spark, or by a virtual clock.
"""
