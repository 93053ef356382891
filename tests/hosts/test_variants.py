"""The table of variants: both hosts hold the same one, pick the same variant, and refuse in the same words.

Plan: table; choice by name, by default, for a shape that a variant does not serve, of a device with fewer features;
an unknown name; a kernel whose feature the device lacks.
"""

import dataclasses
import json

import pytest

from tests.hosts.conftest import MirrorError
from webgpu.kernels import Kernels, MissingFeature, load_manifest
from webgpu.variants import VARIANTS, UnknownVariant, Variant, available, first_choice, pick, to_try

FEATURES = [[], ["subgroups"], ["f16"], ["subgroups", "f16"]]


def test_table_is_the_same_on_both_hosts(mirror):
    ours = {operation: [dataclasses.asdict(each) for each in every] for operation, every in VARIANTS.items()}
    assert mirror.ask("variants") == json.loads(json.dumps(ours))


@pytest.mark.parametrize("operation", VARIANTS)
def test_first_variant_needs_nothing_and_serves_all(operation):
    first = VARIANTS[operation][0]
    assert first == Variant(first.name)
    assert len({each.name for each in VARIANTS[operation]}) == len(VARIANTS[operation])


@pytest.mark.parametrize("operation", VARIANTS)
@pytest.mark.parametrize("features", FEATURES)
def test_available_follows_the_features(operation, features, mirror):
    ours = available(operation, features)
    assert ours == mirror.ask("available", operation=operation, features=features)
    assert ours[0] == VARIANTS[operation][0].name
    assert all(set(each.needs) <= set(features) for each in VARIANTS[operation] if each.name in ours)


@pytest.mark.parametrize("software", [True, False])
@pytest.mark.parametrize("features", FEATURES)
def test_trial_leaves_the_tile_to_gpus_and_f16_to_nobody(features, software, mirror):
    for H in (64, 256):
        ours = to_try("attention", features, software, H=H)
        question = {"operation": "attention", "features": features, "software": software, "sizes": {"H": H}}
        assert mirror.ask("to_try", **question) == ours
        assert ours == [
            name
            for name, fits in (
                ("fa2", True),
                ("registers", "subgroups" not in features and H == 64),
                ("texels", "subgroups" in features and H == 64),
                ("tile", not software and H == 64),
            )
            if fits
        ]


@pytest.mark.parametrize("software", [True, False])
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("fmt", [1, 3, 4])
def test_trial_leaves_groups_to_gpus_and_a_format_to_those_who_take_it(fmt, features, software, mirror):
    for operation, formats in (("matmul", (1, 3, 4)), ("matvec", (3, 4))):
        ours = to_try(operation, features, software, fmt=fmt, H=64)
        question = {"operation": operation, "features": features, "software": software, "sizes": {"fmt": fmt, "H": 64}}
        assert mirror.ask("to_try", **question) == ours
        assert ("groups" in ours) == (not software)
        assert ("quads" in ours) == ("subgroups" in features and fmt in formats)


@pytest.mark.parametrize("H", [16, 20, 64, 80, 128, 256])
@pytest.mark.parametrize("operation", VARIANTS)
def test_pick_takes_the_name_or_falls_back_to_the_first(operation, H, mirror):
    first = VARIANTS[operation][0].name
    for fmt, S in ((1, 8), (3, 256), (4, 257)):
        sizes = {"H": H, "S": S, "fmt": fmt}
        assert pick(operation, None, **sizes) == first
        for each in VARIANTS[operation]:
            serves = all(value in each.serves.get(letter, (value,)) for letter, value in sizes.items())
            assert pick(operation, each.name, **sizes) == (each.name if serves else first)
            assert pick(operation, each.name, **sizes) == mirror.ask(
                "pick", operation=operation, variant=each.name, sizes=sizes
            )


def test_pick_unknown_name_is_refused_in_the_same_words(mirror):
    with pytest.raises(UnknownVariant) as ours:
        pick("attention", "magic", H=64, S=9)
    with pytest.raises(MirrorError) as theirs:
        mirror.ask("pick", operation="attention", variant="magic", sizes={"H": 64, "S": 9})
    assert theirs.value.message == str(ours.value)


@pytest.mark.parametrize("software", [True, False])
@pytest.mark.parametrize("features", [[], ["subgroups"], ["f16", "subgroups"]])
def test_first_choice_is_available_and_alike(features, software, mirror):
    ours = first_choice(features, software)
    assert mirror.ask("first", features=features, software=software) == ours
    assert all(name in available(operation, features) for operation, name in ours.items())
    shared = {"attention": "texels"} | dict.fromkeys(("cells", "matmul", "matvec", "lens"), "quads")
    rows = {"attention": "registers", "decode": "once"}
    groups = dict.fromkeys(("matmul", "matvec", "norm", "lens"), "groups")
    assert ours == (groups if not software else rows | shared if "subgroups" in features else rows)


@pytest.mark.gpu
def test_kernel_without_its_feature_is_refused(device):
    bare = Kernels(dataclasses.replace(device, features=frozenset()))
    bare.manifest = {**load_manifest(), "swiglu": {**load_manifest()["swiglu"], "needs": ["subgroups"]}}
    with pytest.raises(MissingFeature, match="Kernel swiglu needs subgroups"):
        bare.pipeline("swiglu", {})
    bare.manifest = load_manifest()
    bare.pipeline("swiglu", {})


@pytest.mark.gpu
def test_device_has_the_features_and_lanes_it_reports(device):
    assert device.features <= {"subgroups", "f16"}
    assert (device.lanes == (0, 0)) == ("subgroups" not in device.features)
    assert device.lanes[0] <= device.lanes[1]
