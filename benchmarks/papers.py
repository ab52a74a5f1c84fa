"""The papers' published figures, to stand beside ours. Every constant is one table, row by row.

A row's key says what was run; percentages are in percent, and rates from 0 to 1, as printed.
"""

from __future__ import annotations

Table = dict[tuple[str, ...], dict[str, float]]


def _table(columns: str, rows: dict[tuple[str, ...], tuple[float | None, ...]]) -> Table:
    """Name the figures of each row; a column that a paper leaves empty is left out."""
    names = columns.split(", ")
    return {
        key: {name: figure for name, figure in zip(names, figures, strict=True) if figure is not None}
        for key, figures in rows.items()
    }


KNOWAGENT_TABLE_1 = _table(
    "HotpotQA easy, HotpotQA medium, HotpotQA hard, HotpotQA, ALFWorld seen, ALFWorld unseen",
    {
        ("CoT", "Llama-2-7b"): (35.80, 26.69, 18.20, 26.90, None, None),
        ("ReAct", "Llama-2-7b"): (25.14, 19.87, 17.39, 20.80, 1.43, 0.75),
        ("Reflexion", "Llama-2-7b"): (35.55, 28.73, 24.35, 29.54, 2.86, 2.24),
        ("FireAct", "Llama-2-7b"): (40.56, 31.70, 24.13, 32.13, 27.86, 25.38),
        ("KnowAgent", "Llama-2-7b"): (40.80, 32.49, 27.12, 33.47, 29.26, 29.35),
        ("CoT", "Llama-2-13b"): (37.90, 25.28, 21.64, 28.27, None, None),
        ("ReAct", "Llama-2-13b"): (28.68, 22.15, 21.69, 24.17, 13.58, 9.70),
        ("Reflexion", "Llama-2-13b"): (44.43, 37.50, 28.17, 36.70, 18.57, 17.16),
        ("FireAct", "Llama-2-13b"): (51.95, 33.93, 28.88, 38.26, 47.86, 50.37),
        ("KnowAgent", "Llama-2-13b"): (46.97, 37.60, 33.22, 39.26, 54.29, 58.71),
        ("CoT", "Llama-2-70b"): (45.37, 36.33, 32.27, 37.99, None, None),
        ("ReAct", "Llama-2-70b"): (39.70, 37.19, 33.62, 36.83, 41.43, 37.31),
        ("Reflexion", "Llama-2-70b"): (48.01, 46.35, 35.64, 43.33, 49.29, 47.01),
        ("FireAct", "Llama-2-70b"): (51.96, 47.56, 44.60, 48.04, 77.85, 77.61),
        ("KnowAgent", "Llama-2-70b"): (56.75, 49.90, 37.76, 48.14, 77.14, 78.36),
    },
)
"""KnowAgent, Table 1: F1 on HotpotQA (100 questions a level, and their mean), success on ALFWorld; in percent."""

KNOWAGENT_TABLE_2 = _table(
    "ALFWorld seen, ALFWorld unseen",
    {
        ("ReAct", "Llama-2-13b"): (13.58, 9.70),
        ("KnowAgent, not tuned", "Llama-2-13b"): (30.00, 38.06),
    },
)
"""KnowAgent, Table 2: success in percent before any tuning."""

KNOWAGENT_TABLE_3 = _table(
    "invalid, misordered",
    {
        ("ReAct", "Llama-2-13b"): (2.08, 3.54),
        ("Reflexion", "Llama-2-13b"): (6.87, 3.87),
        ("KnowAgent", "Llama-2-13b"): (0.35, 1.23),
    },
)
"""KnowAgent, Table 3: actions on HotpotQA that are invalid or misordered, in percent."""

KNOWAGENT_TABLE_4 = _table(
    "HotpotQA, ALFWorld",
    {
        ("manual", "Llama-2-7b"): (33.47, 20.15),
        ("distilled", "Llama-2-7b"): (25.22, 18.66),
        ("manual", "Llama-2-13b"): (39.26, 52.24),
        ("distilled", "Llama-2-13b"): (25.72, 51.49),
    },
)
"""KnowAgent, Table 4: F1 and success in percent, knowledge written by people and by GPT-4."""

KNOWAGENT_SELF_LEARNING = _table(
    "tasks, rounds, kept at least, kept at most, hours a round",
    {
        ("HotpotQA", "Llama-2-13b"): (500, 2, 100, 200, None),
        ("ALFWorld", "Llama-2-7b"): (510, 2, None, None, 20),
    },
)
"""KnowAgent, sections 4.2, 4.3 and appendix A: tasks to synthesise trajectories for (ALFWorld: 85 of each kind), and
rounds; what was kept, and the hours on 8 V100, are printed as "approximately" and "around".

Its Figure 3 (rounds with and without action knowledge) and Figure 4 (rounds by model, 0 to 4) print no figures, and
its text names none: nothing is read off their bars here.
"""

_WESE_COLUMNS = "success, steps, prompt tokens, completion tokens, dollars"

WESE_TABLE_1 = _table(
    _WESE_COLUMNS,
    {
        ("Act",): (0.43, 10.83, 4_908_548, 21_243, 98.60),
        ("Act", "WESE"): (0.63, 7.54, 3_746_290, 19_562, 75.32),
        ("Act", "SESE"): (0.67, 6.73, 7_259_508, 75_153, 146.69),
        ("ReAct",): (0.57, 16.64, 7_565_676, 43_250, 152.18),
        ("ReAct", "WESE"): (0.72, 13.69, 5_032_374, 41_004, 101.47),
        ("ReAct", "SESE"): (0.75, 12.41, 8_996_182, 97_286, 181.87),
    },
)
"""WESE, Table 1: ALFWorld, 134 tasks. Steps are the mean over successes; tokens and cost are of all tasks together."""

WESE_TABLE_2 = _table(
    "total reward, reward, steps, prompt tokens, completion tokens, dollars",
    {
        ("Act",): (4908, 16.58, 18.00, 13_554_960, 55_817, 272.22),
        ("Act", "WESE"): (5198, 17.56, 15.68, 13_491_043, 65_952, 271.14),
        ("Act", "SESE"): (5249, 17.73, 15.39, 36_424_190, 165_568, 731.80),
        ("ReAct",): (4454, 15.05, 20.00, 17_716_698, 84_724, 356.03),
        ("ReAct", "WESE"): (5317, 17.96, 19.65, 16_310_632, 80_851, 327.83),
        ("ReAct", "SESE"): (5053, 17.07, 19.02, 40_293_571, 196_338, 809.80),
    },
)
"""WESE, Table 2: ScienceWorld, 296 tasks; steps to the first reward. Its last row is printed as "ReAct-WESE" again."""

WESE_TABLE_3 = _table(
    _WESE_COLUMNS,
    {
        ("CoT",): (0.318, 1.00, 261_347, 25_382, 5.73),
        ("Act",): (0.296, 3.53, 2_390_041, 14_236, 48.09),
        ("Act", "WESE"): (0.353, 2.69, 2_307_421, 13_973, 46.42),
        ("Act", "SESE"): (0.361, 2.58, 7_522_826, 271_551, 155.89),
        ("ReAct",): (0.342, 3.17, 3_234_876, 65_306, 66.00),
        ("ReAct", "WESE"): (0.394, 2.29, 2_574_401, 67_908, 52.85),
        ("ReAct", "SESE"): (0.416, 2.11, 7_338_590, 323_401, 153.24),
    },
)
"""WESE, Table 3: HotpotQA, 500 questions; success is an exact match. 271,551 is printed "27,1551"."""

WESE_TABLE_4 = _table(
    _WESE_COLUMNS,
    {
        ("CoT",): (0.61, 1.00, 100_387, 11_942, 2.25),
        ("Act",): (0.56, 2.16, 723_646, 6_980, 14.61),
        ("Act", "WESE"): (0.62, 1.58, 723_867, 5_937, 14.60),
        ("Act", "SESE"): (0.64, 1.57, 2_822_189, 122_543, 60.89),
        ("ReAct",): (0.63, 2.18, 1_074_080, 36_040, 22.20),
        ("ReAct", "WESE"): (0.68, 1.62, 918_905, 29_895, 18.98),
        ("ReAct", "SESE"): (0.70, 1.59, 3_104_924, 162_363, 65.35),
    },
)
"""WESE, Table 4: FEVER, 500 claims."""

LUMOS_TABLE_1A = _table(
    "Mind2Web",
    {
        ("Baichuan", "Baichuan-13b-chat"): (2.3,),
        ("WizardLM", "WizardLM-30b"): (3.1,),
        ("Koala", "Koala-13b"): (6.0,),
        ("GPT-3.5", "gpt-3.5-turbo"): (15.7,),
        ("Claude", "claude"): (21.0,),
        ("GPT-4", "gpt-4"): (22.6,),
        ("Lumos-I, web", "Llama-2-7b"): (27.6,),
        ("Lumos-I", "Llama-2-7b"): (27.7,),
    },
)
"""Lumos, Table 1a: steps of Mind2Web's other domains that succeeded, in percent."""

LUMOS_TABLE_1B = _table(
    "GSM8K, SVAMP",
    {
        ("Code-Llama, PoT", "Code-Llama-13b"): (36.1, 60.0),
        ("Platypus", "Platypus-30b"): (37.8, 51.7),
        ("Orca-Platypus", "Orca-Platypus-13b"): (38.4, 56.9),
        ("Galactica", "Galactica-30b"): (41.7, 41.6),
        ("Lumos-O, maths", "Llama-2-7b"): (50.5, 65.5),
        ("Lumos-I, maths", "Llama-2-7b"): (47.1, 63.6),
        ("Lumos-I", "Llama-2-7b"): (46.7, 63.8),
    },
)
"""Lumos, Table 1b: accuracy on maths, in percent. Two rows that are printed "about" are left out."""

LUMOS_TABLE_1C = _table(
    "StrategyQA, HotpotQA",
    {
        ("CoT", "GPT-3.5-turbo"): (56.0, 37.8),
        ("ReAct", "GPT-3.5-turbo"): (64.6, 40.8),
        ("ART", "GPT-3"): (66.4, None),
        ("ReWOO", "GPT-3.5-turbo"): (66.6, 42.4),
        ("Lumos-O, QA", "Llama-2-7b"): (60.6, 39.2),
        ("Lumos-I, QA", "Llama-2-7b"): (65.7, 45.9),
        ("Lumos-I, QA, answers by GPT-4", "Llama-2-7b"): (72.4, 56.8),
        ("Lumos-I", "Llama-2-7b"): (66.3, 46.3),
    },
)
"""Lumos, Table 1c: StrategyQA's accuracy and HotpotQA's "LLM accuracy", in percent; GPT-3.5-turbo answers."""

LUMOS_TABLE_1D = _table(
    "WebShop",
    {
        ("Baichuan", "Baichuan-13b-chat"): (5.7,),
        ("Koala", "Koala-13b"): (6.0,),
        ("WizardLM", "WizardLM-30b"): (10.6,),
        ("Vicuna", "Vicuna-13b"): (12.6,),
        ("ChatGLM2", "ChatGLM2"): (19.4,),
        ("Lumos-I, web", "Llama-2-7b"): (34.7,),
        ("Lumos-I, maths", "Llama-2-7b"): (30.1,),
        ("Lumos-I, QA", "Llama-2-7b"): (33.5,),
        ("Lumos-I", "Llama-2-7b"): (39.8,),
    },
)
"""Lumos, Table 1d: mean reward of 500 WebShop goals, in percent."""

LUMOS_TABLE_2A = _table(
    "Mind2Web",
    {
        ("one model for all steps", "Llama-2-7b"): (25.3,),
        ("Lumos-I, web", "Llama-2-7b"): (27.6,),
    },
)
"""Lumos, Table 2a: as Table 1a, trained on the same data."""

LUMOS_TABLE_2B = _table(
    "GSM8K, SVAMP",
    {
        ("vanilla training", "Llama-2-7b"): (9.9, 12.7),
        ("chain-of-thought training", "Llama-2-7b"): (40.4, 52.2),
        ("one model for all steps", "Llama-2-7b"): (45.5, 61.7),
        ("Lumos-O, maths", "Llama-2-7b"): (50.5, 65.5),
        ("Lumos-I, maths", "Llama-2-7b"): (47.1, 63.6),
    },
)
"""Lumos, Table 2b: as Table 1b, trained on the same data."""

LUMOS_TABLE_2C = _table(
    "StrategyQA, HotpotQA",
    {
        ("vanilla training", "Llama-2-7b"): (61.0, 23.4),
        ("chain-of-thought training", "Llama-2-7b"): (58.3, 22.1),
        ("one model for all steps", "Llama-2-7b"): (62.3, 39.6),
        ("Lumos-O, QA", "Llama-2-7b"): (60.6, 39.2),
        ("Lumos-I, QA", "Llama-2-7b"): (65.7, 45.9),
    },
)
"""Lumos, Table 2c: as Table 1c, trained on the same data."""

LUMOS_TABLE_4 = _table(
    "StrategyQA, HotpotQA",
    {
        ("Lumos-I, QA, 2,000 annotations", "Llama-7b"): (58.3, 38.1),
        ("Lumos-I, QA, low-level subgoals", "Llama-2-7b"): (63.3, 44.3),
        ("Lumos-I, QA", "Llama-2-7b"): (65.7, 45.9),
    },
)
"""Lumos, Table 4: as Table 1c, other annotations. ReWOO-Planner's own data is printed "about", and left out."""
