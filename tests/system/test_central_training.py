"""The example of central training keeps the epsilon that it says, by dp-accounting's figures."""

import re
import runpy
from pathlib import Path

import dp_accounting
import pytest
from dp_accounting import pld, rdp

from hubbub.privacy.composition import Event, compose

pytestmark = pytest.mark.thorough

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_centrally.py"


def test_both_ways_learn_at_the_epsilon_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE))["main"](["--epsilon", "1", "--seed", "1"])
    sgd, output, plain = capsys.readouterr().out.splitlines()
    [spent] = re.findall(r"epsilon ([\d.]+) at 1e-06", sgd)
    assert 0.97 < float(spent) <= 1.0
    scores = [float(re.findall(r"AUC ([\d.]+)", line)[0]) for line in (sgd, output, plain)]
    assert scores[2] > scores[0] > 0.86
    assert scores[1] > 0.8


def test_composition_of_central_training_equals_dp_accounting() -> None:
    sigma, sampling, steps, delta = 3.0, 1024 / 24_000, 240, 1e-6
    event = dp_accounting.PoissonSampledDpEvent(sampling, dp_accounting.GaussianDpEvent(sigma))
    composition = compose([Event(sigma=sigma, sampling=sampling, times=steps)], delta)
    losses = pld.PLDAccountant(value_discretization_interval=1e-4)
    assert composition.pld == pytest.approx(
        losses.compose(event, steps).get_epsilon(delta), rel=1e-3
    )
    assert composition.rdp == pytest.approx(
        rdp.RdpAccountant().compose(event, steps).get_epsilon(delta)
    )
