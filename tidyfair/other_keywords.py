"""Keywords of other libraries, and the sentence that names the one to write here."""

from __future__ import annotations

from collections.abc import Collection

_OF_CALLS = {
    "data": "X df frame",
    "truth": "actual actuals ground_truth labels_true observed target targets true y y_true",
    "estimate": "decision pred predicted prediction predictions preds y_hat y_pred yhat",
    "probs": "prob proba probabilities probability probas probas_pred score scores y_prob y_proba y_score y_scores",
    "case_weights": "sample_weight sample_weights w weight weights",
    "frequency_weights": "freq freq_weights frequencies",
    "group_by": "control_features groupby",
    "pos_label": "favorable_label favourable pos_class positive positive_class positive_label",
    "estimator": "average averaging multi_class",
    "threshold": "cut_off cutoff decision_threshold thresholds",
    "conf_level": "ci ci_level confidence confidence_interval confidence_level level",
    "times": "n_boot n_boots n_bootstrap n_bootstraps n_draws n_perm n_permutations n_resamples",
    "seed": "random_seed random_state rng",
    "na_rm": "drop_na dropna ignore_na skipna",
    "on_undefined": "zero_division",
    "cluster": "cluster_id clusters",
}
"""Keywords of calls on data, each with those that other libraries have for it."""
_OF_COMPARISONS = {
    "to": "method ref ref_group reference reference_group",
    "min_n": "min_group_size min_rows min_size",
    "aggregate": "agg aggregation",
}
"""The same for keywords that are given with the feature."""
_OF_TESTS = {
    "adjust": "correction p_adjust",
    "within": "strata stratify",
    "below": "limit max_difference tolerance",
    "above": "limit min_ratio",
}
"""The same for keywords that only some tests and gates have."""
_FEATURES = (
    "attribute", "by", "group", "groups", "prot_attr", "protected", "protected_attribute", "protected_attributes",
    "sensitive", "sensitive_attribute", "sensitive_feature", "sensitive_features",
)  # fmt: skip
"""Keywords of the columns whose groups are compared."""
_EVENT = 'The event does not follow from the order of levels: write `pos_label="yes"` in the call.'
_OF_SIDES = 'Give the sides instead of the feature: `demographic_parity(privileged(sex="male"))(data, …)`.'
_SENTENCES = {
    "event_level": _EVENT,
    "privileged": _OF_SIDES,
    "privileged_group": _OF_SIDES,
    "privileged_groups": _OF_SIDES,
    "unprivileged": _OF_SIDES,
    "unprivileged_groups": _OF_SIDES,
}
"""Keywords without a counterpart, and what to write instead."""
_SWITCHES = ("ci", "confidence_interval", "confidence_intervals", "intervals")
"""Keywords that ask for intervals, and may have their level."""
_REMARKS = {
    "alpha": ", which is 1 - alpha",
    "average": ', such as "macro"',
    "method": ' ("overall" for "to_overall"; groups are compared with each other where it is left out)',
    "zero_division": "; without a denominator values are null",
}


def hint(name: str, known: Collection[object]) -> str:
    """The sentence on what to write instead of a keyword; empty if no other library has it.

    >>> hint("y_true", ["data", "truth", "estimate"])
    'Here `y_true` is `truth=`.'
    >>> hint("alpha", ["below", "above", "conf_level"])
    'Here `alpha` is `conf_level=`, which is 1 - alpha.'
    """
    if name in _FEATURES:
        return _hint_of_features(name, known)
    if name in _SENTENCES:
        return _SENTENCES[name]
    remark = _REMARKS.get(name, "")
    keywords = _OF_CALLS | _OF_COMPARISONS | _OF_TESTS
    if name in _SWITCHES and "interval" in known:
        return f'Here `{name}` is `interval="auto"`, and its level is `conf_level=`.'
    ours = [f"`{keyword}=`" for keyword, theirs in keywords.items() if keyword in known and name in theirs.split()]
    place = ", and is given with the data" if name == "alpha" and "conf_level" not in known else ""
    if name == "alpha":
        # it is also an option of formulas; functions with adjusted p-values have the level of a call
        ours = ["`conf_level=`"] if {"conf_level", "adjust"} & set(known) else []
    if ours:
        return f"Here `{name}` is {' or '.join(ours)}{remark}{place}."
    for elsewhere, where in ((_OF_CALLS, "data"), (_OF_COMPARISONS, "feature")):
        for keyword, theirs in elsewhere.items():
            if name in theirs.split():
                return f"Here `{name}` is `{keyword}=`{remark}, and is given with the {where}."
    return ""


def belongs_to_calls(name: str) -> bool:
    """Check whether other libraries have this keyword for one of a call on data."""
    return any(name in theirs.split() for theirs in _OF_CALLS.values())


def _hint_of_features(name: str, known: Collection[object]) -> str:
    """The sentence on where to give the columns whose groups are compared."""
    if "by" in known:
        return f'Here `{name}` is `by=`, such as `by={{"sex": …}}`.'
    sentence = (
        'Give the columns whose groups are compared first: `demographic_parity("sex")(data, …)` or '
        '`accuracy.difference("sex")(data, …)`.'
    )
    if "group_by" in known:
        sentence += " `group_by=` gives each group a separate row."
    return sentence
