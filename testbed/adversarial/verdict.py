"""Whether a case of the corpus gets the verdict that its file states, and a part of the corpus for suites."""

from testbed.adversarial.corpus import Case
from testbed.adversarial.harness import Harness
from warpsmith.domain.device import Backend

PART = (
    "cheats/d01_padded_partial.cl:one_in_a_thousand",
    "cheats/d01_padded_partial.cl:where_a_mark_was_left",
    "cheats/d01_ragged_partial.cl:all_but_the_last",
    "cheats/d01_silu_partial.cl:all_but_the_last",
    "cheats/d01_skip_if_done.cl",
    "cheats/d01_matmul_verifies.cl",
    "cheats/d02_takes_for_cleared.cl",
    "cheats/d03_answers_in_padding.cl:by_first_elements",
    "cheats/d03_answers_in_padding.cl:by_four_elements",
    "cheats/d03_memo.cl",
    "cheats/d03_replay.cl:same_fingerprint",
    "cheats/d04_counts_words.cl:counter_by_preprocessor",
    "cheats/d04_hidden_words.cl:pasted_twice",
    "cheats/d04_hidden_words.cl:file_in_a_part_that_a_counter_chose",
    "cheats/d04_honest_first.cl:ten",
    "cheats/d04_poison_sniff.cl",
    "cheats/d04_right_only_here.cl:assembly_is_a_macro",
    "cheats/d04_time_bomb.cl:pasted_name",
    "cheats/d04_spoiled_output.cl:marked_all",
    "cheats/d05_silu_structure.cl:large_gates",
    "cheats/d05_silu_row_sniff.cl:looks_sparse",
    "cheats/d07_silu_inside.cl",
    "cheats/d08_loose_job.cl:zeros_would_pass",
    "cheats/d10_changes_inputs.cl:the_last",
    "cheats/d10_changes_lengths.cl:to_half",
    "cheats/d10_keeps_in_inputs.cl",
    "cheats/d10_writes_inputs_back.cl:restored",
    "cheats/d11_reads_outside.cl:behind_the_input",
    "cheats/d12_old_padding.cl:last_bit",
    "cheats/d16_forged_times.cl:ten_thousandth",
    "cheats/d11_guards.cl:far_end_of_the_guard",
    "cheats/d18_launch.cl:block_too_large",
    "cheats/d19_entry.cl:assembly_by_paste",
    "cheats/d19_native.cl:data_among_code",
    "cheats/d20_one_shape_free.cl",
    "cheats/d24_include.cl:environment",
    "cheats/d25_words_to_the_judge.cl:comment",
    "cheats/d26_one_shape.cl:two_widths",
    "cheats/d26_one_shape.cl:one_listed_extent",
    "cheats/d27_faults.cl:trap",
    "mutants/silu.cl:up_one_off",
    "mutants/silu.cl:half_sigmoid",
    "mutants/silu.cl:last_block_skipped",
    "honest/padded_matmul_forms.cl:rubbish_in_the_padding",
    "honest/padded_matmul_forms.cl:partial_sums_in_the_padding",
    "honest/ragged_silu_forms.cl:infinity_beyond",
    "honest/silu_words_that_do_not_count.cl:assembly_in_a_macro_without_use",
    "honest/silu_words_in_passing.cl:in_an_inactive_part",
    "honest/silu_words_in_passing.cl:in_an_assertion_that_is_off",
    "honest/silu_zero_skip.cl:element",
    "honest/silu_writes_twice.cl:garbage_first",
)
"""Something of every layer, in about a minute."""


def check_stated_verdict(harness: Harness, case: Case, backend: Backend) -> None:
    """Take a case through the whole procedure; fails where its state or its layer is not the stated one."""
    found = harness.try_candidate(case.job(backend), case.template(backend), case.times)
    state = case.status_on(backend)
    if state != "varies":
        assert ("held" if found.meets(case.expect) else "open") == state, found
    if case.layer and not found.accepted:
        # Words of CUDA are looked for in winners alone.
        is_late = (
            backend.language.has_cuda_words and case.layer == "compile" and "depends on __" in found.reason
        )
        assert found.layer == ("winner" if is_late else case.layer), found
    assert not any(secret in found.reason for secret in ("root:", "PATH=")), "a file's contents came back"
