"""Models learned from randomized gradients: definition, descent, and evaluation."""

from hubbub.analysis.models.coefficients import Coefficient, coefficients, in_own_units
from hubbub.analysis.models.definition import Feature, Model
from hubbub.analysis.models.descent import (
    IN_ROUNDS,
    Learned,
    averaged,
    averaged_weights,
    centre_of,
    deal,
    gradients,
    learn,
    linear,
    noise_of,
    rate_of,
    rounds_for,
    rounds_of,
    scores,
    stepped,
)
from hubbub.analysis.models.evaluation import Evaluation, evaluate
from hubbub.analysis.models.judgement import Bin, Judgement, Share, edges_of, judge
from hubbub.analysis.models.prediction import foretold, settled
from hubbub.analysis.models.round_decoding import (
    DirectionMoments,
    draw_moments,
    told_by,
    told_by_cells,
)
from hubbub.analysis.models.weight_variances import Round
from hubbub.analysis.models.without_privacy import without_privacy

__all__ = [
    "IN_ROUNDS",
    "Bin",
    "Coefficient",
    "DirectionMoments",
    "Evaluation",
    "Feature",
    "Judgement",
    "Learned",
    "Model",
    "Round",
    "Share",
    "averaged",
    "averaged_weights",
    "centre_of",
    "coefficients",
    "deal",
    "draw_moments",
    "edges_of",
    "evaluate",
    "foretold",
    "gradients",
    "in_own_units",
    "judge",
    "learn",
    "linear",
    "noise_of",
    "rate_of",
    "rounds_for",
    "rounds_of",
    "scores",
    "settled",
    "stepped",
    "told_by",
    "told_by_cells",
    "without_privacy",
]
