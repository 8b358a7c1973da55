"""The paper's tables as the experiments have them, and their figures once more, typed from the paper."""

from __future__ import annotations

from engine.experiments import planning

FIG_6 = list(planning.FIG_6)
FIG_9 = list(planning.FIG_9)
FIG_6_SIGNATURES = 181
FIG_9_SIGNATURES = 49

FIG_6_COSTS = [2_560_021] * 2 + [2_943_325] * 6 + [2_996_202] * 2
FIG_9_COSTS = [3_058_034] + [3_772_470] * 2 + [3_804_470] * 3 + [4_079_844] + [4_110_417] * 2 + [4_361_051]
FIG_6_SORTERS = [1_803_841, 142_877, 2_107_144, 2_107_144, 1_660_964, 446_180, 446_180, 0, 1_660_964, 0]
FIG_9_SORTERS = [
    1_303_017, 2_049_453, 1_303_017, 2_049_453, 746_436, 0, 2_324_827, 2_407_400, 1_660_964, 1_303_017,
]  # fmt: skip
