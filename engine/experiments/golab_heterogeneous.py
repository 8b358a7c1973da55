"""The heterogeneous jobs of the streaming warehouse's figures 9 and 10 (section 4.6)."""

from __future__ import annotations

from engine.experiments.golab import JOBS, JobClass

# Priorities are the inverse of the periods, so that all weigh the same at the end of their periods.
JOB_CLASSES = (JobClass(JOBS // 2, (100.0,), 100.0), JobClass(JOBS // 2, (1.0,), 10_000.0))
UTILIZATIONS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
