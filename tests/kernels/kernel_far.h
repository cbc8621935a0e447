// Part of kernel_driver.cpp, within its namespace.
//
// More than 2^32 of everything: elements of a tensor, elements before it, units, tensors, records. Only the last unit
// of a kernel runs, and only what that may touch is there: addresses begin far in front of it.
constexpr uint64_t FAR = 1ULL << 34;
constexpr uint64_t REST = 4001;

void on_last_block(uint64_t blocks, const std::function<void()> &run) {
    // The strict twin begins with the last block.
    ascend_mock_set_block(adasum_strict_schedule != nullptr ? 0 : blocks - 1, blocks);
    run();
}

Problem rest_problem() {
    Problem problem;
    problem.add(REST, 0);
    return problem;
}

Output gram_at(uint64_t far) {
    Vectors vectors(rest_problem(), 2, DTYPE_FLOAT);
    for (int i = 0; i < 2; ++i) {
        reinterpret_cast<uint64_t *>(vectors.table->address())[i] -= (far + far * UNIT) * sizeof(float);
    }
    Memory<uint64_t> segments({far, far * UNIT + REST, 0, far});
    Memory<float> partials(untouched(record_words(2)));
    on_last_block(far + 1, [&] {
        gram(vectors.table->address(), segments.address(), partials.behind(far * record_words(2)), 2, DTYPE_FLOAT, 1,
             far + 1, nullptr);
    });
    return output_of(partials, DTYPE_FLOAT);
}

Output fold_at(uint64_t far) {
    Memory<uint64_t> segments({0, REST, far, 0});
    Memory<float> partials(made_records(1, 2));
    Memory<float> records(untouched(record_words(2)));
    on_last_block(far + 1, [&] {
        fold(partials.behind(far * record_words(2)), segments.behind(far * SEGMENT_WORDS),
             records.behind(far * record_words(2)), 2, far + 1, nullptr);
    });
    return output_of(records, DTYPE_FLOAT);
}

Output coefficients_at(uint64_t far) {
    Memory<float> records(made_records(2, 2));
    Memory<uint64_t> references({far, 2});
    Memory<uint64_t> indices({far, far + 1});
    Memory<float> out(untouched(coefficient_words(2)));
    on_last_block(far + 1, [&] {
        coefficients(records.behind(far * record_words(2)), references.behind(far * REFERENCE_WORDS),
                     indices.behind(far), out.behind(far * coefficient_words(2)), 2, far + 1, 0, nullptr);
    });
    return output_of(out, DTYPE_FLOAT);
}

Output sum_at(uint64_t far) {
    Vectors vectors(rest_problem(), 2, DTYPE_FLOAT16);
    for (int i = 0; i < 2; ++i) {
        reinterpret_cast<uint64_t *>(vectors.table->address())[i] -= (far + far * UNIT) * 2;
    }
    std::vector<float> words(coefficient_words(2));
    for (uint32_t i = 0; i < 2; ++i) {
        words[COEFFICIENT_WEIGHT + i] = 0.3F;
    }
    Memory<float> table(words);
    Memory<uint64_t> segments({far, far * UNIT + REST, 0, far});
    Memory<uint16_t> out{std::vector<uint16_t>(REST)};
    on_last_block(far + 1, [&] {
        weighted_sum(vectors.table->address(), segments.address(), table.behind(far * coefficient_words(2)),
                     out.behind(far + far * UNIT), 2, DTYPE_FLOAT16, 1, far + 1, nullptr, 0, nullptr);
    });
    return output_of(out, DTYPE_FLOAT16);
}

Output move_at(uint64_t far, bool is_pack) {
    Memory<uint8_t> vector(vector_of(rest_problem(), 0, DTYPE_FLOAT));
    Memory<uint16_t> other{std::vector<uint16_t>(REST)};
    Memory<uint64_t> segments({far, far * UNIT + REST, 0, far});
    uint64_t tensor = is_pack ? vector.number() - far * UNIT * sizeof(float) : other.number() - far * UNIT * 2;
    Memory<uint64_t> addresses({tensor});
    on_last_block(far + 1, [&] {
        uint8_t *fused = is_pack ? other.behind(far + far * UNIT) : vector.behind((far + far * UNIT) * sizeof(float));
        (is_pack ? pack : unpack)(addresses.behind(far), segments.address(), fused, bits_of_factor(0.5F), DTYPE_FLOAT,
                                  DTYPE_FLOAT16, far + 1, 1, far + 1, nullptr);
    });
    return output_of(other, DTYPE_FLOAT16);
}

Output pack_at(uint64_t far) { return move_at(far, true); }
Output unpack_at(uint64_t far) { return move_at(far, false); }

Output subtract_at(uint64_t far) {
    Vectors vectors(rest_problem(), 2, DTYPE_FLOAT);
    Memory<float> out(untouched(REST));
    uint64_t before = far * UNIT;
    on_last_block(far + 1, [&] {
        subtract(vectors.memory[0]->behind(before * sizeof(float)), vectors.memory[1]->behind(before * sizeof(float)),
                 out.behind(before), DTYPE_FLOAT, before + REST, nullptr);
    });
    return output_of(out, DTYPE_FLOAT);
}

Output check_at(uint64_t far) {
    std::vector<uint8_t> values = vector_of(rest_problem(), 0, DTYPE_FLOAT);
    const uint32_t infinity = 0x7f800000;
    std::memcpy(&values[4 * (REST - 1)], &infinity, 4);
    Memory<uint8_t> vector(values);
    Memory<uint64_t> segments({far, far * UNIT + REST, 0, far});
    Memory<float> flags{std::vector<float>(FLAG_WORDS)};
    on_last_block(far + 1, [&] {
        finite_check(vector.behind((far + far * UNIT) * sizeof(float)), segments.address(),
                     flags.behind(far * FLAG_WORDS), DTYPE_FLOAT, 1, far + 1, nullptr);
    });
    return output_of(flags, DTYPE_FLOAT);
}
