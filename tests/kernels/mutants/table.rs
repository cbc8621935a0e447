//! The mistakes, by the duty that must find each.

use super::{
    ALIGNMENT, BARRIERS, BLOCKS, BOUNDS, CAPACITY, DATA, FLAGS, LIMITS, Mutant, PIPES, QUEUES,
    RECEIPTS, TYPES, UNINITIALISED, UNKNOWN,
};

mutants! {
    // 1: the unified buffer.
    mutant_gram_buffers_too_large: "gram", CAPACITY, [(
        "gram.cpp", "tiles_, 2, radix", "tiles_, 6, radix",
    )];
    mutant_fold_many_buffers: "fold", CAPACITY, [(
        "fold.cpp",
        "window_ = window_buffer_",
        "for (auto &more : more_) {\npipe.InitBuffer(more, 32);\n}\nwindow_ = window_buffer_",
    ), (
        "fold.cpp",
        "Segments segments_;",
        "TBuf<TPosition::VECCALC> more_[64];\nSegments segments_;",
    )];
    // 2: blocks of 32 bytes.
    mutant_gram_tiles_off_blocks: "gram", ALIGNMENT, [(
        "gram.cpp",
        "tile_ = tile_of<T>(radix);\nstride_ = tile_stride<T>(radix);\n",
        "tile_ = tile_of<T>(radix);\nstride_ = tile_stride<T>(radix) - 4;\n",
    )];
    mutant_sum_copy_of_odd_bytes: "weighted_sum", ALIGNMENT, [(
        "weighted_sum.cpp", "copy_out(out_[offset], result, count)", "DataCopy(out_[offset], result, count)",
    )];
    mutant_sum_parts_off_blocks: "weighted_sum", ALIGNMENT, [("weighted_sum.cpp", "PART = 512", "PART = 500")];
    // 3: tensors and device memory.
    mutant_gram_tile_beyond_its_buffer: "gram", BOUNDS, [(
        "gram.cpp", "tiles_, 2, radix * stride_", "tiles_, 2, radix * tile_",
    )];
    mutant_gram_reads_one_too_many: "gram", BOUNDS, [(
        "gram.cpp", "vectors_[i][offset], count)", "vectors_[i][offset], count + 1)",
    )];
    mutant_fold_reads_past_the_units: "fold", BOUNDS, [(
        "fold.cpp", "smaller(window_records_, unit_end_ - unit)", "window_records_",
    )];
    mutant_coefficients_past_the_list: "coefficients", BOUNDS, [(
        "coefficients.cpp", "smaller(WINDOW, list_end_ - first)", "WINDOW",
    )];
    mutant_sum_past_the_weights: "weighted_sum", BOUNDS, [(
        "weighted_sum.cpp", "(known < tensor ? tensor : known) + 1", "tensor + 16",
    )];
    mutant_sum_past_the_copies: "weighted_sum", BOUNDS, [(
        "weighted_sum.cpp", "copies_.seek(copy, copy_count_)", "copies_.seek(copy, copy_count_ + 1)",
    )];
    mutant_coefficients_past_the_table: "coefficients", BOUNDS, [(
        "device.h", "smaller(ENTRIES, limit - entry)", "ENTRIES",
    )];
    mutant_table_beyond_its_window: "weighted_sum", BOUNDS, [(
        "device.h", "return entry >= begin_ && entry < end_;", "return entry >= begin_ && end_ != 0;",
    )];
    // 4: queues.
    mutant_gram_without_enque: "gram", QUEUES, [("gram.cpp", "tiles_.EnQue(tiles);\n", "")];
    mutant_sum_without_deque: "weighted_sum", QUEUES, [(
        "weighted_sum.cpp", "tiles = tiles_.template DeQue<T>();\n", "",
    )];
    mutant_gram_never_frees: "gram", QUEUES, [("gram.cpp", "tiles_.FreeTensor(tiles);\n", "")];
    mutant_sum_frees_twice: "weighted_sum", QUEUES, [(
        "weighted_sum.cpp",
        "tiles_.FreeTensor(tiles);\n",
        "tiles_.FreeTensor(tiles);\ntiles_.FreeTensor(tiles);\n",
    )];
    mutant_sum_frees_before_use: "weighted_sum", QUEUES, [(
        "weighted_sum.cpp", "copy_out(out_[offset], result, count);\n",
        "sums_.FreeTensor(result);\ncopy_out(out_[offset], result, count);\n",
    )];
    mutant_sum_copies_out_of_vecin: "weighted_sum", QUEUES, [(
        "weighted_sum.cpp", "TQue<TPosition::VECOUT, 1> sums_", "TQue<TPosition::VECIN, 1> sums_",
    )];
    mutant_fold_copies_into_veccalc: "fold", QUEUES, [(
        "fold.cpp", "TBuf<TPosition::VECIN> window_buffer_", "TBuf<TPosition::VECCALC> window_buffer_",
    )];
    mutant_fold_copies_out_of_veccalc: "fold", QUEUES, [(
        "fold.cpp", "TBuf<TPosition::VECOUT> results_buffer_", "TBuf<TPosition::VECCALC> results_buffer_",
    )];
    mutant_gram_enque_beyond_depth: "gram", QUEUES, [(
        "gram.cpp",
        "load_tiles(unit.offset + done, count);\n",
        "load_tiles(unit.offset + done, count);\nload_tiles(unit.offset + done, count);\n",
    )];
    // 5: order between pipes.
    mutant_sum_without_its_queue: "weighted_sum", PIPES, [(
        "weighted_sum.cpp", "tiles_.EnQue(tiles);\ntiles = tiles_.template DeQue<T>();\n", "",
    )];
    mutant_gram_checks_before_the_sums: "gram", PIPES, [(
        "gram.cpp", "}\nwait_for<HardEvent::V_S>();\nfor", "}\nfor",
    )];
    mutant_gram_copies_before_the_checks: "gram", PIPES, [(
        "gram.cpp", "wait_for<HardEvent::S_V>();\nstages_.EnQue(stage);\n", "stages_.EnQue(stage);\n",
    )];
    mutant_fold_reads_before_the_copy: "fold", PIPES, [(
        "fold.cpp", "wait_for<HardEvent::MTE2_S>();\n", "",
    )];
    mutant_fold_writes_before_the_copy: "fold", PIPES, [(
        "fold.cpp", "wait_for<HardEvent::MTE3_S>();\n", "",
    )];
    mutant_fold_reads_what_is_loaded_over: "fold", PIPES, [(
        "fold.cpp", "wait_for<HardEvent::V_MTE2>();\n", "",
    )];
    mutant_fold_stores_before_it_copies: "fold", PIPES, [(
        "fold.cpp", "wait_for<HardEvent::V_MTE3>();\n", "",
    )];
    mutant_coefficients_copied_before_written: "coefficients", PIPES, [(
        "coefficients.cpp", "wait_for<HardEvent::S_MTE3>();\n", "",
    )];
    mutant_sum_weights_before_their_copy: "weighted_sum", PIPES, [(
        "device.h", "wait_for<AscendC::HardEvent::MTE2_S>();\n", "",
    )];
    mutant_table_read_before_its_copy: "coefficients", PIPES, [(
        "device.h", "wait_for<AscendC::HardEvent::MTE2_S>();\n", "",
    )];
    mutant_coefficients_window_overwritten: "coefficients", PIPES, [(
        "coefficients.cpp", "wait_for<HardEvent::V_MTE2>();\n", "",
    )];
    mutant_coefficients_read_before_they_are_summed: "coefficients", PIPES, [(
        "coefficients.cpp",
        "wait_for<HardEvent::V_S>();\n}\n\n// Sums",
        "}\n\n// Sums",
    )];
    mutant_lanes_scaled_before_their_factors: "coefficients", PIPES, [(
        "tree_lanes.h",
        "wait_for<AscendC::HardEvent::S_V>();\n}\n\n__aicore__ inline void load",
        "}\n\n__aicore__ inline void load",
    )];
    mutant_lanes_use_inverses_too_early: "coefficients", PIPES, [(
        "tree_lanes.h",
        "wait_for<AscendC::HardEvent::S_V>();\n}\n\n// weight",
        "}\n\n// weight",
    )];
    // 6: order within the vector unit.
    mutant_gram_products_without_barrier: "gram", BARRIERS, [(
        "gram_lanes.h",
        "strips);\n}\n}\nAscendC::PipeBarrier<PIPE_V>();\n",
        "strips);\n}\n}\n",
    )];
    mutant_gram_sums_before_they_are_cleared: "gram", BARRIERS, [(
        "gram_lanes.h",
        "(entries_ * WIDTH));\nAscendC::PipeBarrier<PIPE_V>();\n",
        "(entries_ * WIDTH));\n",
    )];
    mutant_gram_tree_without_barrier: "gram", BARRIERS, [(
        "gram_lanes.h",
        "static_cast<int32_t>(half));\n}\nAscendC::PipeBarrier<PIPE_V>();\n",
        "static_cast<int32_t>(half));\n}\n",
    )];
    mutant_gram_many_products_without_barrier: "gram", BARRIERS, [(
        "gram_lanes.h",
        "count);\n}\n}\nAscendC::PipeBarrier<PIPE_V>();\n}\n\n// Writes the hi words of a record; its lo words stay as they are, which is zero.\n__aicore__ inline void finish(const AscendC::LocalTensor<float> &record) {\njoin_lanes(record, sums_, lanes_, width_",
        "count);\n}\n}\n}\n\n__aicore__ inline void finish(const AscendC::LocalTensor<float> &record) {\njoin_lanes(record, sums_, lanes_, width_",
    )];
    mutant_gram_many_sums_before_they_are_cleared: "gram", BARRIERS, [(
        "gram_lanes.h",
        "(entries_ * width_));\nAscendC::PipeBarrier<PIPE_V>();\n",
        "(entries_ * width_));\n",
    )];
    mutant_gram_overwrites_what_is_read: "gram", BARRIERS, [(
        "gram_exact.h", "Sub(rest_, sum, work_, count)", "Sub(work_, sum, work_, count)",
    )];
    mutant_gram_joins_lanes_too_early: "gram", BARRIERS, [(
        "gram_exact.h",
        "static_cast<int32_t>(BLOCK));\n}\nAscendC::PipeBarrier<PIPE_V>();\n",
        "static_cast<int32_t>(BLOCK));\n}\n",
    )];
    mutant_gram_sorts_lanes_of_one_entry_more: "gram", UNINITIALISED, [(
        "gram_exact.h", "sums.hi, entries_);\n", "sums.hi, entries_ + 1);\n",
    )];
    mutant_gram_overwrites_a_sum_that_is_needed: "gram", BARRIERS, [(
        "two_float_lanes.h",
        "AscendC::Sub(sum.lo, sum.hi, work, count);\nAscendC::PipeBarrier<PIPE_V>();\n",
        "AscendC::Sub(sum.lo, sum.hi, work, count);\n",
    )];
    mutant_lanes_split_too_early: "coefficients", BARRIERS, [(
        "two_float_lanes.h",
        "AscendC::Sub(halves.hi, halves.hi, halves.lo, count);\nAscendC::PipeBarrier<PIPE_V>();\n",
        "AscendC::Sub(halves.hi, halves.hi, halves.lo, count);\n",
    )];
    mutant_lanes_sum_spreads_too_early: "coefficients", BARRIERS, [(
        "tree_lanes.h",
        "AscendC::Mul(part_b, part_b, row(SPREADS + b), count_);\nAscendC::PipeBarrier<PIPE_V>();\n",
        "AscendC::Mul(part_b, part_b, row(SPREADS + b), count_);\n",
    )];
    mutant_gram_uses_casts_too_early: "gram", BARRIERS, [(
        "gram.cpp",
        "if (sizeof(T) != sizeof(float)) {\nPipeBarrier<PIPE_V>();\n}\nif (exponents_",
        "if (exponents_",
    )];
    mutant_sum_without_barrier: "weighted_sum", BARRIERS, [(
        "weighted_sum.cpp",
        "Add(sum, sum, product_, count);\nPipeBarrier<PIPE_V>();\n",
        "Add(sum, sum, product_, count);\n",
    )];
    // 7: what nothing has written.
    mutant_gram_forgets_the_tail: "gram", UNINITIALISED, [(
        "gram.cpp", "smaller(step, count - from)", "step",
    )];
    mutant_gram_lanes_not_cleared: "gram", UNINITIALISED, [(
        "gram_lanes.h",
        "AscendC::Duplicate(sums_, 0.0f, static_cast<int32_t>(entries_ * WIDTH));\n",
        "",
    )];
    mutant_gram_takes_a_strip_too_many: "gram", UNINITIALISED, [(
        "gram_lanes.h", "uint32_t strips = whole + ", "uint32_t strips = whole + 1 + ",
    )];
    mutant_gram_record_not_cleared: "gram", UNINITIALISED, [(
        "gram.cpp", "Duplicate(stage, 0.0f, static_cast<int32_t>(count * words_));\n", "",
    )];
    // 8: operands and limits.
    mutant_gram_sums_repeats_in_place: "gram", LIMITS, [(
        "arch.h", "constexpr uint8_t NEXT = REPEAT / BLOCK", "constexpr uint8_t NEXT = 0",
    )];
    mutant_gram_strips_overlap: "gram", LIMITS, [(
        "arch.h", "constexpr uint8_t NEXT = REPEAT / BLOCK", "constexpr uint8_t NEXT = 4",
    )];
    mutant_gram_tree_overlaps: "gram", LIMITS, [(
        "gram_lanes.h",
        "own[half], static_cast<int32_t>(half)",
        "own[half / 2], static_cast<int32_t>(half)",
    )];
    mutant_gram_without_a_repeat: "gram", LIMITS, [(
        "gram_lanes.h", "products_[entry * WIDTH],\nstrips);", "products_[entry * WIDTH],\n0);",
    )];
    mutant_gram_too_many_repeats: "gram", LIMITS, [(
        "gram_lanes.h", "sums, width, entries);\n}\n\n// One fp32 sum a lane, for two", "sums, width, entries + 256);\n}\n\n// One fp32 sum a lane, for two",
    )];
    mutant_gram_mask_too_wide: "gram", LIMITS, [(
        "arch.h", "static_cast<int32_t>(BLOCK), static", "static_cast<int32_t>(128), static",
    )];
    mutant_fold_copy_too_long: "fold", LIMITS, [(
        "arch.h",
        "AscendC::DataCopyExtParams shape{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};\nAscendC::DataCopyPad(dst, src, shape);",
        "AscendC::DataCopyExtParams shape{1, static_cast<uint32_t>(count * sizeof(T)) + 2097152, 0, 0, 0};\nAscendC::DataCopyPad(dst, src, shape);",
    )];
    // 9: types.
    mutant_sum_adds_bf16: "weighted_sum", TYPES, [(
        "weighted_sum.cpp",
        "Add(sum, sum, product_, count);\n",
        "auto low = sum.ReinterpretCast<bfloat16_t>();\nAdd(low, low, low, count);\n",
    )];
    mutant_sum_casts_without_rounding: "weighted_sum", TYPES, [(
        "weighted_sum.cpp",
        "Add(sum, sum, product_, count);\n",
        "Cast(product_.ReinterpretCast<bfloat16_t>(), sum, RoundMode::CAST_NONE, static_cast<uint32_t>(count));\n",
    )];
    mutant_sum_scales_by_a_double: "weighted_sum", TYPES, [(
        "weighted_sum.cpp",
        "Add(sum, sum, product_, count);\n",
        "auto wide = sum.ReinterpretCast<double>();\nMuls(wide, wide, 1.0, count);\n",
    )];
    // 10: blocks.
    mutant_blocks_share_a_unit: "weighted_sum", BLOCKS, [(
        "device.h", "block * part + smaller(block, rest)", "block * part",
    )];
    // 11: flags.
    mutant_flag_set_twice: "fold", FLAGS, [(
        "arch.h",
        "AscendC::SetFlag<event>(id);\n",
        "AscendC::SetFlag<event>(id);\nAscendC::SetFlag<event>(id);\n",
    )];
    mutant_flag_never_waited_for: "coefficients", FLAGS, [(
        "coefficients.cpp",
        "window_ = window_buffer_",
        "SetFlag<HardEvent::S_V>(0);\nwindow_ = window_buffer_",
    )];
    mutant_flag_never_set: "coefficients", FLAGS, [("arch.h", "AscendC::SetFlag<event>(id);\n", "")];
    mutant_flag_set_before_its_last_wait_has_run: "gram", FLAGS, [(
        "gram.cpp",
        "wait_for<HardEvent::S_V>();\nstages_.EnQue(stage);\nstage = stages_.DeQue<float>();\n",
        "stages_.EnQue(stage);\nstage = stages_.DeQue<float>();\nwait_for<HardEvent::S_MTE3>();\n",
    )];
    mutant_signs_while_its_flag_is_waited_for: "fold", FLAGS, [(
        "entry.h",
        "AscendC::PipeBarrier<PIPE_ALL>();\nwait_for<AscendC::HardEvent::S_MTE3>();\n",
        "wait_for<AscendC::HardEvent::S_MTE3>();\nAscendC::PipeBarrier<PIPE_ALL>();\n",
    )];
    mutant_flag_id_out_of_range: "gram", FLAGS, [(
        "arch.h", "GetTPipePtr()->FetchEventID(event))", "GetTPipePtr()->FetchEventID(event)) + 8",
    )];
    // 13: receipts.
    mutant_signs_before_its_copies_are_done: "gram", RECEIPTS, [(
        "entry.h", "AscendC::PipeBarrier<PIPE_ALL>();\n", "",
    )];
    mutant_fold_signs_before_its_work: "fold", RECEIPTS, [(
        "fold.cpp",
        "if (kernel.run(share_of(segment_count))) {\nsign(pipe, receipt);\n}\n",
        "sign(pipe, receipt);\nkernel.run(share_of(segment_count));\n",
    )];
    mutant_adds_until_the_end: "pack", RECEIPTS, [("entry.h", "AscendC::SetAtomicNone();\n", "")];
    mutant_subtract_adds_results: "subtract", RECEIPTS, [(
        "subtract.cpp",
        "copy_in(operands, a_[offset], count);\n",
        "SetAtomicAdd<float>();\ncopy_in(operands, a_[offset], count);\n",
    )];
    mutant_signs_before_the_one_is_written: "finite_check", PIPES, [(
        "entry.h",
        "AscendC::PipeBarrier<PIPE_ALL>();\nwait_for<AscendC::HardEvent::S_MTE3>();\n",
        "AscendC::PipeBarrier<PIPE_MTE3>();\n",
    )];
    mutant_signs_twice: "coefficients", RECEIPTS, [(
        "entry.h",
        "AscendC::DataCopy(signatures, one, BLOCK);\n",
        "AscendC::DataCopy(signatures, one, BLOCK);\nAscendC::DataCopy(signatures, one, BLOCK);\n",
    )];
    mutant_gram_exact_sums_unscaled: "gram", DATA, [(
        "gram.cpp", "sum(exact_, record, unit);", "operands_.scale_by(nullptr);\nsum(exact_, record, unit);",
    )];
    mutant_gram_takes_all_for_separated: "gram", DATA, [(
        "separation.h", "if (!(pivot > LEAST_PIVOT * squares[k])) {", "if (pivot < -1.0f) {",
    )];
    mutant_gram_stops_at_a_vector_of_zeros: "gram", DATA, [(
        "separation.h", "if (squares[k] == 0.0f) {\ncontinue;\n}\n", "",
    )];
    mutant_sum_leaves_out_copies: "weighted_sum", DATA, [(
        "weighted_sum.cpp", "copy_out(copy_of_out(copy)[offset], result, count);\n", "",
    )];
    mutant_sum_never_signs: "weighted_sum", DATA, [(
        "weighted_sum.cpp", "sign(pipe, receipt, complete);\n", "",
    )];
    mutant_coefficients_take_records_as_if_in_a_row: "coefficients", BOUNDS, [(
        "coefficients.cpp", "|| next != record + (i - done)", "",
    )];
    mutant_coefficients_take_records_of_other_tensors: "coefficients", BOUNDS, [(
        "coefficients.cpp", "place < window_begin_ || place >= window_end_", "window_end_ == 0",
    )];
    mutant_coefficients_copy_records_past_the_window: "coefficients", BOUNDS, [(
        "coefficients.cpp", "count = static_cast<uint32_t>(smaller(count, window_end_ - place));\n", "",
    )];
    mutant_coefficients_copy_records_across_a_gap: "coefficients", DATA, [(
        "coefficients.cpp", "references_.number(tensor + single, 0) == place + single &&\n", "",
    )];
    mutant_sum_takes_half_of_its_weights: "weighted_sum", BOUNDS, [(
        "weighted_sum.cpp", " || !coefficients_.holds(tensor * words_ + words_ - 1)", "",
    )];
    mutant_lanes_take_all_for_ordinary: "coefficients", DATA, [(
        "tree_lanes.h", "ordinary_[lane] = ordinary;\n", "ordinary_[lane] = true;\n",
    )];
    mutant_lanes_have_no_doubts: "coefficients", DATA, [(
        "tree_lanes.h", "raise(DOUBT, most);\n", "",
    )];
    mutant_lanes_have_no_doubts_about_nodes: "coefficients", DATA, [(
        "tree_lanes.h", "raise(DOUBT, part);\n", "",
    )];
    mutant_lanes_forget_what_cancels: "coefficients", DATA, [(
        "tree_lanes.h", "raise(CANCELLED, norm);\n", "",
    )];
    mutant_lanes_without_a_limit: "coefficients", DATA, [(
        "coefficients.cpp", "if (is_limited() || cancelling) {", "if (cancelling) {",
    )];
    mutant_coefficients_sign_without_a_record: "coefficients", DATA, [(
        "coefficients.cpp", "complete_ = complete_ && !sum_.missing();\n", "",
    )];
    mutant_record_exponents_out_of_range: "coefficients", DATA, [(
        "records.h", "|| !is_in_range(record)", "",
    )];
    mutant_fold_signs_without_a_record: "fold", DATA, [(
        "fold.cpp", "complete_ = complete_ && !sum_.missing();\n", "",
    )];
    mutant_fold_signs_without_the_record_of_a_unit: "fold", DATA, [(
        "fold.cpp", "complete_ = complete_ && bits_of(only.GetValue(record_flags(radix_))) != MISSING;\n", "",
    )];
    mutant_sum_signs_without_weights: "weighted_sum", DATA, [(
        "weighted_sum.cpp", "complete_ = false;\n", "",
    )];
    mutant_guard_always_fails: "guard", DATA, [(
        "guard.cpp", "&& (due & adasum::GUARD_GOES_ON) == 0", "",
    )];
    mutant_guard_leaves_results: "guard", DATA, [(
        "guard.cpp", "!done && i < count_", "false && i < count_",
    )];
    mutant_guard_forgets_a_failure: "guard", DATA, [(
        "guard.cpp",
        "copy_out(receipt_, words_, BLOCK);\nfor",
        "if (done) {\ncopy_out(receipt_, words_, BLOCK);\n}\nfor",
    )];
    mutant_guard_blames_this_rank: "guard", DATA, [("guard.cpp", "all_ran ? REASON_OTHERS", "false ? REASON_OTHERS")];
    mutant_guard_blames_others: "guard", DATA, [("guard.cpp", "all_ran ? REASON_OTHERS", "true ? REASON_OTHERS")];
    mutant_guard_tells_again: "guard", DATA, [("guard.cpp", "read(reason_) != 0.0f", "false")];
    mutant_guard_goes_on: "guard", DATA, [("guard.cpp", "AscendC::Trap();\n", "")];
    mutant_guard_stops_with_copies_under_way: "guard", QUEUES, [(
        "guard.cpp",
        "return kernel.run(static_cast<uint32_t>(due), size);\n",
        "bool done = kernel.run(static_cast<uint32_t>(due), size);\nif (!done) {\nTrap();\n}\nreturn done;\n",
    )];
    // Not declared, or elsewhere by the vendor.
    mutant_scalar_unit_reads_device_memory: "coefficients", UNKNOWN, [(
        "coefficients.cpp",
        "sum_.store(results);\n",
        "sum_.store(results);\ncomplete_ = records_.GetValue(0) != 3.0f;\n",
    )];
    mutant_pipe_pointer_of_the_namespace: "gram", UNKNOWN, [(
        "arch.h", "(::GetTPipePtr()", "(AscendC::GetTPipePtr()",
    )];
    // Element by element.
    mutant_pack_without_enque: "pack", QUEUES, [("move.h", "sources_.EnQue(source);\n", "")];
    mutant_pack_frees_before_use: "pack", QUEUES, [(
        "move.h",
        "Operation::apply(result, source, wide_, factor, count);\nsources_.FreeTensor(source);\n",
        "sources_.FreeTensor(source);\nOperation::apply(result, source, wide_, factor, count);\n",
    )];
    mutant_unpack_without_barrier: "unpack", BARRIERS, [(
        "move.h",
        "AscendC::PipeBarrier<PIPE_V>();\nAscendC::Cast(to, wide",
        "AscendC::Cast(to, wide",
    )];
    mutant_unpack_writes_one_too_many: "unpack", BOUNDS, [(
        "move.h", "copy_out(to_[to], result, count);", "copy_out(to_[to], result, count + 1);",
    )];
    mutant_pack_tables_too_large: "pack", CAPACITY, [("move.h", "sources_, 2, UNIT * ", "sources_, 8, 2 * UNIT * ")];
    mutant_subtract_operands_off_blocks: "subtract", ALIGNMENT, [(
        "subtract.cpp", "STRIDE = UNIT + 256 / sizeof(T)", "STRIDE = UNIT + 60 / sizeof(T)",
    )];
    mutant_subtract_without_barrier: "subtract", BARRIERS, [(
        "subtract.cpp",
        "widen(wide[UNIT], b, count);\nPipeBarrier<PIPE_V>();\n",
        "widen(wide[UNIT], b, count);\n",
    )];
    mutant_subtract_without_its_queue: "subtract", PIPES, [(
        "subtract.cpp", "operands_.EnQue(operands);\noperands = operands_.template DeQue<T>();\n", "",
    )];
    mutant_subtract_reads_a_short_operand: "subtract", UNINITIALISED, [(
        "subtract.cpp", "copy_in(operands[STRIDE], b_[offset], count);", "copy_in(operands[STRIDE], b_[offset], count - 1);",
    )];
    mutant_check_reads_sums_too_early: "finite_check", PIPES, [(
        "finite_check.cpp", "wait_for<HardEvent::V_S>();\n", "",
    )];
    mutant_check_blocks_disagree: "finite_check", BLOCKS, [(
        "finite_check.cpp", "Duplicate(one_, 1.0f,", "Duplicate(one_, 1.0f + static_cast<float>(GetBlockIdx()),",
    )];
    mutant_check_multiplies_integers: "finite_check", TYPES, [(
        "finite_check.cpp",
        "Muls(products_, values, 0.0f,",
        "Muls(values.ReinterpretCast<int64_t>(), values.ReinterpretCast<int64_t>(), static_cast<int64_t>(0), 4);\n\
         Muls(products_, values, 0.0f,",
    )];
    mutant_guard_looks_too_early: "guard", PIPES, [(
        "guard.cpp", "wait_for<HardEvent::MTE2_S>();\nreturn found_", "return found_",
    )];
    // More than 2^32 elements.
    mutant_far_offset_in_32_bits: "gram" with "--far", BOUNDS, [(
        "device.h", "span{offset_ + done_, done_,", "span{static_cast<uint32_t>(offset_ + done_), done_,",
    )];
    mutant_far_place_in_32_bits: "pack" with "--far", BOUNDS, [(
        "device.h", "span{offset_ + done_, done_,", "span{offset_ + done_, static_cast<uint32_t>(done_),",
    )];
    mutant_far_record_in_32_bits: "coefficients" with "--far", BOUNDS, [(
        "coefficients.cpp", "records_[record * words_]", "records_[static_cast<uint32_t>(record * words_)]",
    )];
    mutant_far_tensor_in_32_bits: "weighted_sum" with "--far", BOUNDS, [(
        "device.h", "memory_[entry * WORDS]", "memory_[static_cast<uint32_t>(entry) * WORDS]",
    )];
    // Arch 1001: whole blocks, fewer types.
    mutant_1001_copies_bytes: "gram" on 1001, TYPES, [(
        "arch.h", "#define ADASUM_WHOLE_BLOCKS 1", "#define ADASUM_WHOLE_BLOCKS 0",
    )];
    mutant_1001_takes_bf16: "subtract" on 1001, TYPES, [(
        "arch.h", "#define ADASUM_HAS_BF16 0", "#define ADASUM_HAS_BF16 1",
    )];
    mutant_1001_copies_a_tail_of_odd_bytes: "gram" on 1001, ALIGNMENT, [(
        "arch.h",
        "AscendC::DataCopy(dst, src, whole_blocks<T>(count));\n}\n\ntemplate <typename T>\n__aicore__ inline void copy_out",
        "AscendC::DataCopy(dst, src, count);\n}\n\ntemplate <typename T>\n__aicore__ inline void copy_out",
    )];
    mutant_1001_leaves_the_rest_of_a_block: "weighted_sum" on 1001, UNINITIALISED, [(
        "weighted_sum.cpp",
        "padded(static_cast<uint32_t>(smaller(tile_, span.len - done)))",
        "static_cast<uint32_t>(smaller(tile_, span.len - done))",
    )];
    mutant_1001_writes_a_block_too_many: "unpack" on 1001, BOUNDS, [(
        "arch.h", "return (count + 2 * BLOCK - 1)", "return (count + 4 * BLOCK)",
    )];
    mutant_1001_event_id_of_newer_chips: "fold" on 1001, FLAGS, [(
        "arch.h", "GetTPipePtr()->FetchEventID(event))", "GetTPipePtr()->FetchEventID(event)) + 4",
    )];
    mutant_1001_product_without_barrier: "gram" on 1001, BARRIERS, [(
        "arch.h",
        "AscendC::Mul(work, a, b, count);\nAscendC::PipeBarrier<PIPE_V>();\n",
        "AscendC::Mul(work, a, b, count);\n",
    )];
    mutant_1001_products_in_one_place: "gram" on 1001, BARRIERS, [(
        "gram_lanes.h", "products_[entry % 2 * width_]", "products_[0]",
    )];
    mutant_1001_product_of_strips_without_barrier: "gram" on 1001, BARRIERS, [(
        "arch.h",
        "strides_of(STRIP));\nAscendC::PipeBarrier<PIPE_V>();\n",
        "strides_of(STRIP));\n",
    )];
    mutant_1001_rounds_by_an_absent_mode: "weighted_sum" on 1001, TYPES, [(
        "arch.h", "TO_NEAREST = AscendC::RoundMode::CAST_NONE", "TO_NEAREST = AscendC::RoundMode::CAST_RINT",
    )];
    mutant_1001_stops: "guard" on 1001, TYPES, [("guard.cpp", "#if ADASUM_NPU_ARCH != 1001", "#if 1")];
    mutant_1001_sums_before_the_lanes: "gram" on 1001, PIPES, [(
        "arch.h",
        "wait_for<AscendC::HardEvent::V_S>();\nfor (uint32_t i = 0; i < count; ++i) {\nfloat sums",
        "for (uint32_t i = 0; i < count; ++i) {\nfloat sums",
    )];
    mutant_1001_sorts_before_the_lanes: "gram" on 1001, PIPES, [(
        "arch.h",
        "wait_for<AscendC::HardEvent::V_S>();\nfor (uint32_t i = 0; i < count; ++i) {\nto.SetValue(i % BLOCK",
        "for (uint32_t i = 0; i < count; ++i) {\nto.SetValue(i % BLOCK",
    )];
}
