"""What a source calls a variable is read from its symbol, whatever compilers put around it."""

import pytest

from warpsmith.tuning.outputs.symbols import variable_of, without_unit

# As NVRTC 13.0 and nvcc 12 name them for two kernels that differ by one statement.
SAME = [
    (
        "_ZN45_INTERNAL_00000000_9_kernel_cu_f475f82c_272634cuda3ptx3__411cta_group_1E",
        "_ZN44_INTERNAL_00000000_9_kernel_cu_8f6b7acf_27384cuda3ptx3__411cta_group_1E",
    ),
    (
        "_ZN45_INTERNAL_03e720b8_9_kernel_cu_79567f09_2733947_GLOBAL__N__03e720b8_9_kernel_cu_79567f09_273395memo2E",
        "_ZN45_INTERNAL_03e720b8_9_kernel_cu_4e5d72c4_2738847_GLOBAL__N__03e720b8_9_kernel_cu_4e5d72c4_273885memo2E",
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_stands_behind_the_hash_is_compared(one: str, other: str) -> None:
    assert one != other
    assert without_unit(one) == without_unit(other)


def test_another_variable_of_the_same_unit_keeps_its_name() -> None:
    first, _ = SAME[0]
    assert without_unit(first) != without_unit(first.replace("cta_group_1", "cta_group_2"))


@pytest.mark.parametrize(
    "symbol",
    ["memo", "_ZN3cub10AlignBytesI10ulong4_16aE11ALIGN_BYTESE", "_ZN", "_ZN99short", "_INTERNAL_x", ""],
)
def test_other_names_stay_as_they_are(symbol: str) -> None:
    assert without_unit(symbol) == symbol


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("memo", "memo"),
        ("_ZL4memo", "memo"),
        ("_ZZ1fPKfPfiE5table", "table"),
        ("_ZZ1fPKfPfiE5table_0", "table"),
        ("_ZZN2ns1fIfLi4EEEvPKT_PS1_E5table", "table"),
        ("_ZN51_INTERNAL_1a3f0000_17_default_program_abcdef01_12345callsE", "calls"),
        ("_ZN3foo7calls1aE", "calls1a"),
        ("_Z5callsI1aE", "calls"),
        ("_ZN3cub10AlignBytesI10ulong4_16aE11ALIGN_BYTESE", "ALIGN_BYTES"),
        (SAME[1][0], "memo2"),
        ("_ZN99short", ""),
    ],
)
def test_the_variable_of_a_symbol_is_what_the_source_calls_it(symbol: str, name: str) -> None:
    assert variable_of(symbol) == name
