"""Which names are variants of one library."""

from __future__ import annotations

import pytest

from envspec.torch_abi.variants import broken_members, family_of, is_for_another_torch


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("torchcodec/libtorchcodec_core4.so", "torchcodec/libtorchcodec_core8.so"),
        ("x/libaddon_torch24-cuda.so", "x/libaddon_torch211-cuda.so"),
        ("hook_mode_torch.abi3.so", "hook_mode_torch_cu12.abi3.so"),
        ("hook_mode_torch_cu12.abi3.so", "hook_mode_torch_cu13.abi3.so"),
        ("sgl_kernel/sm90/common_ops.abi3.so", "sgl_kernel/sm100/common_ops.abi3.so"),
        ("nccl/ep/lib/cu12/libnccl_ep.so", "nccl/ep/lib/cu13/libnccl_ep.so"),
    ],
)
def test_variants_are_one_family(one: str, other: str) -> None:
    assert family_of(one) == family_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x/libaddon_torch24-cuda.so", "x/libaddon_torch24-cpu.so"),
        ("x/libcore4.so", "x/libops4.so"),
        ("a/_C.abi3.so", "b/_C.abi3.so"),
        ("sgl_kernel/flash_ops.abi3.so", "sgl_kernel/spatial_ops.abi3.so"),
    ],
)
def test_different_libraries_are_not(one: str, other: str) -> None:
    assert family_of(one) != family_of(other)


def test_one_sound_variant_excuses_the_others() -> None:
    names = ["core4.so", "core5.so", "other.so"]
    assert broken_members(names, {"core4.so", "other.so"}.__contains__) == ["other.so"]
    assert broken_members(names, {"core4.so", "core5.so"}.__contains__) == ["core4.so", "core5.so"]


def test_what_is_named_for_another_torch_is_never_loaded() -> None:
    assert is_for_another_torch("x/libaddon_torch29-cpu.so", "2.14.1")
    assert not is_for_another_torch("x/libaddon_torch29-cpu.so", "2.9.1+cu130")
    assert not is_for_another_torch("x/libaddon_torch214-cpu.so", "2.14.1")
    assert not is_for_another_torch("torch24/libaddon.so", "2.14.1")
    assert not is_for_another_torch("x/libtorchcodec_core4.so", "2.14.1")
    assert broken_members(["a_torch29.so"], lambda name: True, "2.14.1") == []
