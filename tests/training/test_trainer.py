"""The trainer: the fast network is the oracle's model, an interrupted run ends where an uninterrupted one does.

Plan: export a freshly drawn network, read it with the oracle, compare logits; train a few steps in one go and in two,
compare weights; Muon's step is nearly orthogonal; the smoke run (slow) passes the induction gate.
"""

from dataclasses import replace

import pytest
import torch

from python_ref.load import load_model
from tests.tolerances import EXPORTED_LOGITS
from weights.training.export import export_weights
from weights.training.muon import orthogonal
from weights.training.network import Network
from weights.training.optimise import schedule
from weights.training.repeats import Repeats
from weights.training.shape import Shape
from weights.training.smoke import smoke
from weights.training.stages import repeats_stage
from weights.training.trainer import train

SMALL = Shape(V=64, D=32, L=2, N=4, K=2, H=16, F=48, positions=64)
SHORT = Repeats(steps=6, rows=4, T=32, longest=12)


def test_network_is_the_oracles_model(tmp_path):
    torch.manual_seed(0)
    network = Network(SMALL)
    for block in network.layers:
        torch.nn.init.normal_(block.mlp.down_proj.weight, std=0.2)  # drawn as zero: the layer would not be compared
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(parameter.half())  # the file holds float16
    export_weights(network, tmp_path)
    ids = torch.randint(SMALL.V, (2, 30))
    with torch.inference_mode():
        ours, theirs = network.logits(network(ids)[-1]), load_model(tmp_path)(ids)
    torch.testing.assert_close(ours, theirs, atol=EXPORTED_LOGITS, rtol=0)


def interrupted(stage, after):
    """The same stage, whose batch `after` is a loss of power."""
    drawn = iter(range(after))

    def losses(r):
        if next(drawn, None) is None:
            raise KeyboardInterrupt
        return stage.losses(r)

    return replace(stage, losses=losses)


def test_interrupted_run_ends_where_an_uninterrupted_one_does(tmp_path, monkeypatch):
    monkeypatch.setattr("weights.training.trainer.CHECKPOINT_EVERY_S", -1.0)  # after every step
    ended = []
    for name, after in (("whole", None), ("broken", 3)):
        torch.manual_seed(1)
        network = Network(SMALL)
        (tmp_path / name).mkdir()
        if after is not None:
            with pytest.raises(KeyboardInterrupt):
                train(network, interrupted(repeats_stage(network, SHORT), after), tmp_path / name, 0, str)
            torch.manual_seed(2)
            network = Network(SMALL)  # as a new process would have it: other weights, replaced by the checkpoint's
        train(network, repeats_stage(network, SHORT), tmp_path / name, 0, str)
        ended.append(network.state_dict())
    for name, whole in ended[0].items():
        torch.testing.assert_close(whole, ended[1][name], atol=0, rtol=0, msg=name)


def test_vocabulary_doubles_when_accuracy_is_good_and_not_before():
    state = {"vocabulary": 8, "average": 0.0, "since": 0}
    for _ in range(200):
        SHORT.grow(state, 0.5, 64)
    assert state["vocabulary"] == 8
    for _ in range(500):
        SHORT.grow(state, 1.0, 64)
    assert state["vocabulary"] == 64


def test_schedule_rises_holds_and_falls_to_nearly_zero():
    factors = [schedule(step, 1000, 0.4) for step in range(1000)]
    assert factors[0] < 0.1 and factors[300] == 1.0 and factors[-1] < 0.01


def test_muon_step_has_singular_values_near_one():
    torch.manual_seed(3)
    values = torch.linalg.svdvals(orthogonal(torch.randn(2, 24, 40)))
    assert values.min() > 0.5 and values.max() < 1.5


@pytest.mark.slow
@pytest.mark.timeout(1200)  # two minutes on a free core, and there may be none
def test_smoke_run_passes_the_induction_gate(tmp_path):
    accuracy, induction = smoke(tmp_path, str)
    assert accuracy >= 0.95 and induction >= 0.7
