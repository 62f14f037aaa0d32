"""The legal rules that audits and pages quote, with dates and sources: no other module has sentences about the law."""

from __future__ import annotations

from typing import NamedTuple

CHECKED = "November 2026"
"""When all sentences of this file were last checked against their sources."""


class Rule(NamedTuple):
    """A rule as of the date of the last check."""

    title: str
    version: str
    """The text that is meant, with its dates."""
    source: str
    status: str = ""
    """A change that is due, or a question that the text leaves open."""

    @property
    def footnote(self) -> str:
        """Its status, with the date of the last check."""
        return f"Status in {CHECKED}: {self.status}"


NYC_LL144 = Rule(
    "New York City, Local Law 144",
    "Local Law 144 of 2021; rules adopted 2023-04-06, in effect since 2023-05-06",
    "New York City Administrative Code 20-870 to 20-874; 6 RCNY 5-300 to 5-304",
)
UNIFORM_GUIDELINES = Rule(
    "United States, Uniform Guidelines on Employee Selection Procedures",
    "29 CFR part 1607 of 1978, with the questions and answers of 1979",
    "29 CFR 1607.4(D); 44 FR 11996 (1979-03-02); RIN 3046-AB43",
    "the EEOC has announced that it will rescind its interpretive part of the guidelines; check the current status.",
)
REGULATION_B = Rule(
    "United States, Regulation B (credit)",
    "Regulation B has had no effects test since 2026-07-21 (final rule of 2026-04-22)",
    "12 CFR 1002",
)
EU_AI_ACT = Rule(
    "European Union, AI Act",
    "Regulation (EU) 2024/1689 of 2024-06-13, as amended in 2026: duties of Annex III apply from 2027-12-02, of "
    "Annex I from 2028-08-02",
    "Regulation (EU) 2024/1689, Articles 10(2), 10(3), 10(4) and 15(3); Digital Omnibus on AI, adopted by the Council "
    "on 2026-06-29",
    "the amendment widens the basis for processing sensitive data to detect bias; prEN 18283 is the candidate standard "
    "on bias.",
)
PAY_TRANSPARENCY = Rule(
    "European Union, pay transparency",
    "Directive (EU) 2023/970; first reports in June 2027",
    "Articles 9(1)(a) to (g) and 10",
    "a difference of 5% or more that is not justified leads to a joint pay assessment.",
)
OTHERS = (
    Rule(
        "United States, race and ethnicity in federal statistics", "Statistical Policy Directive 15 of 2024",
        "OMB SPD 15", "several races can be chosen; the deadline for agencies is extended to 2029-09-28.",
    ),
    Rule("Colorado", "SB 26-189, which replaced SB 24-205", "SB 26-189", "it requires no bias audit."),
    Rule(
        "United States, insurance", "evaluation tool for AI systems of the NAIC", "NAIC",
        "a pilot of twelve states.",
    ),
)  # fmt: skip
RULES = (NYC_LL144, UNIFORM_GUIDELINES, REGULATION_B, EU_AI_ACT, PAY_TRANSPARENCY, *OTHERS)
