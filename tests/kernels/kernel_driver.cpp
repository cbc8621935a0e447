// Runs kernels of a twin on a fixed problem, without the mock: kernel_driver [--no-races] NAME... | --far | --counts
//
// --far runs each kernel on its last unit, more than 2^32 elements away from where everything begins, and compares.
// For each kernel it prints a digest of what the kernel wrote. Under the strict twin the kernel runs in every order of
// execution that the twin has, and all must agree. Only the kernels that are linked in can be named.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernel_problem.h"
#include "strict/interface.h"
#include "two_float.h"

extern "C" {
#define WEAK __attribute__((weak))
WEAK void gram(uint8_t *vectors, uint8_t *segments, uint8_t *partials, uint64_t radix, uint64_t dtype,
               uint64_t segment_count, uint64_t unit_count, uint8_t *receipt);
WEAK void fold(uint8_t *partials, uint8_t *segments, uint8_t *records, uint64_t radix, uint64_t segment_count,
               uint8_t *receipt);
WEAK void coefficients(uint8_t *records, uint8_t *references, uint8_t *indices, uint8_t *out, uint64_t radix,
                       uint64_t tensor_count, uint64_t rule, uint8_t *receipt);
WEAK void weighted_sum(uint8_t *vectors, uint8_t *segments, uint8_t *coefficients, uint8_t *out, uint64_t radix,
                       uint64_t dtype, uint64_t segment_count, uint64_t unit_count, uint8_t *copies,
                       uint64_t copy_count, uint8_t *receipt);
WEAK void pack(uint8_t *addresses, uint8_t *segments, uint8_t *fused, uint64_t factor, uint64_t from, uint64_t to,
               uint64_t tensor_count, uint64_t segment_count, uint64_t unit_count, uint8_t *receipt);
WEAK void unpack(uint8_t *addresses, uint8_t *segments, uint8_t *fused, uint64_t factor, uint64_t from, uint64_t to,
                 uint64_t tensor_count, uint64_t segment_count, uint64_t unit_count, uint8_t *receipt);
WEAK void subtract(uint8_t *a, uint8_t *b, uint8_t *out, uint64_t dtype, uint64_t count, uint8_t *receipt);
WEAK void finite_check(uint8_t *vector, uint8_t *segments, uint8_t *flags, uint64_t dtype, uint64_t segment_count,
                       uint64_t unit_count, uint8_t *receipt);
WEAK void guard(uint8_t *receipt, uint64_t due, uint8_t *places, uint64_t count, uint64_t size, uint8_t *reason);
void ascend_mock_set_block(uint64_t index, uint64_t count);
// Of the strict twin only.
WEAK void ascend_mock_set_finder(int (*find)(uint64_t address, uint64_t *left));
WEAK void adasum_strict_schedule(int64_t schedule);
WEAK void adasum_strict_races(uint64_t on);
WEAK uint64_t adasum_strict_count(uint64_t what);
}

namespace {

constexpr int64_t SCHEDULES = 12;
constexpr uint64_t BLOCKS = 2;

std::vector<float> untouched(uint64_t count) { return std::vector<float>(count, -7.0F); }

// Records with all kinds of exponents.
std::vector<float> made_records(uint64_t count, uint32_t radix) {
    static const float exponents[] = {0.0F, 84.0F, -85.0F, 0.0F, -1024.0F};
    std::vector<float> records(count * record_words(radix));
    for (uint64_t i = 0; i < count; ++i) {
        float *record = &records[i * record_words(radix)];
        for (uint32_t entry = 0; entry < entries(radix); ++entry) {
            record[2 * entry] = 2.0F + noise(i, entry);
            record[2 * entry + 1] = noise(i, entry + 100) * 0x1p-26F;
        }
        for (uint32_t vector = 0; vector < radix; ++vector) {
            float exponent = exponents[(i * 3 + vector) % 5];
            record[record_exponents(radix) + vector] = exponent;
            for (uint32_t other = 0; exponent < -1000.0F && other < radix; ++other) {
                uint32_t entry = vector < other ? entry_index(vector, other, radix) : entry_index(other, vector, radix);
                record[2 * entry] = 0.0F;
                record[2 * entry + 1] = 0.0F;
            }
        }
        record[record_flags(radix)] = i % 41 == 40 ? 1.0F : 0.0F;
    }
    return records;
}

// A record of each of some tensors, whose vectors have nearly one length. They are at all angles: of each four tensors one has
// vectors that nearly cancel and one such that hardly anything is left.
std::vector<float> plain_records(uint64_t count, uint32_t radix) {
    static const float cosines[] = {0.3F, -0.9F, 0.0F, -1.0F};
    std::vector<float> records(count * record_words(radix));
    for (uint64_t i = 0; i < count; ++i) {
        for (uint32_t row = 0; row < radix; ++row) {
            for (uint32_t column = row; column < radix; ++column) {
                float cosine = row == column ? 1.0F : (column - row) % 2 == 1 ? cosines[i % 4] : -cosines[i % 4];
                float *entry = &records[i * record_words(radix) + 2 * entry_index(row, column, radix)];
                entry[0] = cosine * (1.0F + noise(i, 7) * 0.5F);
                entry[1] = noise(i, column) * 0x1p-42F;
            }
        }
    }
    if (radix == 3) {
        // Vectors whose sum is zero and whose AdaSum is not: x, x and -2 x.
        const float matrix[] = {1.0F, 1.0F, -2.0F, 1.0F, -2.0F, 4.0F};
        for (uint32_t entry = 0; entry < entries(3); ++entry) {
            records[2 * record_words(3) + 2 * entry] = matrix[entry];
            records[2 * record_words(3) + 2 * entry + 1] = 0.0F;
        }
    }
    return records;
}

// How many blocks signed the receipt that each is given.
template <typename Run>
uint32_t signatures_of(uint64_t blocks, Run run) {
    Memory<float> receipt(std::vector<float>(16));
    for (uint64_t block = 0; block < blocks; ++block) {
        ascend_mock_set_block(block, blocks);
        run(receipt.address());
    }
    return static_cast<uint32_t>(reinterpret_cast<const float *>(receipt.address())[0]);
}

// Runs a kernel on blocks that must all sign.
template <typename Run>
void on_blocks(uint64_t blocks, Run run) {
    uint32_t signatures = signatures_of(blocks, run);
    if (signatures != blocks) {
        std::printf("%u of %llu blocks have signed: other data than was promised\n", signatures,
                    static_cast<unsigned long long>(blocks));
        std::exit(1);
    }
}

using Output = std::vector<uint32_t>;

// What a kernel wrote, element by element. The sign and the payload of a NaN differ between processors.
template <typename T>
Output output_of(const Memory<T> &memory, uint64_t dtype) {
    uint32_t bytes = bytes_of(dtype);
    Output output(memory.size() * sizeof(T) / bytes);
    for (size_t i = 0; i < output.size(); ++i) {
        std::memcpy(&output[i], memory.address() + i * bytes, bytes);
        bool is_nan = dtype == DTYPE_FLOAT && (output[i] & 0x7fffffff) > 0x7f800000;
        output[i] = is_nan ? 0x7fc00000 : output[i];
    }
    return output;
}

void append(Output &all, const Output &more) { all.insert(all.end(), more.begin(), more.end()); }

// The vectors of a problem in device memory, and the table of their addresses.
struct Vectors {
    Vectors(const Problem &problem, uint32_t radix, uint64_t dtype) {
        std::vector<uint64_t> addresses;
        for (uint32_t i = 0; i < radix; ++i) {
            memory.emplace_back(new Memory<uint8_t>(vector_of(problem, i, dtype)));
            addresses.push_back(memory.back()->number());
        }
        table.reset(new Memory<uint64_t>(addresses));
    }

    std::vector<std::unique_ptr<Memory<uint8_t>>> memory;
    std::unique_ptr<Memory<uint64_t>> table;
};

Output gram_of(const Problem &problem, uint32_t radix, uint64_t dtype) {
    Vectors vectors(problem, radix, dtype);
    Memory<uint64_t> segments(problem.segments);
    Memory<float> partials(untouched(problem.units * record_words(radix)));
    on_blocks(BLOCKS, [&](uint8_t *receipt) {
        gram(vectors.table->address(), segments.address(), partials.address(), radix, dtype, problem.segment_count,
             problem.units, receipt);
    });
    return output_of(partials, DTYPE_FLOAT);
}

Output run_gram() {
    Output result = gram_of(small_problem(), 2, DTYPE_FLOAT);
    Problem few;
    for (uint64_t len : {0, 1, 7, 65, 511, 513, 1500, 4097, 4500, 9000}) {
        few.add(len, 5);
    }
    append(result, gram_of(few, 2, DTYPE_FLOAT16));
    if (ADASUM_HAS_BF16) {
        append(result, gram_of(few, 3, DTYPE_BF16));
    }
    append(result, gram_of(few, 3, DTYPE_FLOAT));
    Problem least;
    least.add(5, 3);
    least.add(1500, 0);
    least.add(1400, 0);
    append(result, gram_of(least, 8, DTYPE_FLOAT));
    return result;
}

// As if nothing had written the words of entry `index` of a table.
void forget(std::vector<float> &table, uint64_t index, uint32_t words) {
    std::memset(&table[index * words], 0xff, words * sizeof(float));
}

Output fold_of(const Problem &problem) {
    Memory<uint64_t> segments(problem.segments);
    Memory<float> partials(made_records(problem.units, 2));
    Memory<float> records(untouched(problem.segment_count * record_words(2)));
    on_blocks(BLOCKS, [&](uint8_t *receipt) {
        fold(partials.address(), segments.address(), records.address(), 2, problem.segment_count, receipt);
    });
    return output_of(records, DTYPE_FLOAT);
}

Output run_fold() {
    Problem problem = small_problem();
    problem.add(600 * UNIT, 0);
    Output result = fold_of(problem);
    // Segments of one unit, the last ones of which leave the window.
    Problem short_ones;
    short_ones.add(500 * UNIT, 0);
    for (int i = 0; i < 40; ++i) {
        short_ones.add(5, 0);
    }
    append(result, fold_of(short_ones));
    // A unit of the last segment, which is the last block's.
    Memory<uint64_t> segments(problem.segments);
    Memory<float> records(untouched(problem.segment_count * record_words(2)));
    std::vector<float> made = made_records(problem.units, 2);
    forget(made, problem.units - 7, record_words(2));
    Memory<float> incomplete(made);
    result.push_back(signatures_of(BLOCKS, [&](uint8_t *receipt) {
        fold(incomplete.address(), segments.address(), records.address(), 2, problem.segment_count, receipt);
    }));
    const float *last =
        reinterpret_cast<const float *>(records.address()) + (problem.segment_count - 1) * record_words(2);
    result.push_back(bits_of(last[record_flags(2)]));
    // The only unit of a segment.
    Problem alone;
    alone.add(5, 0);
    Memory<uint64_t> segment(alone.segments);
    std::vector<float> missing(record_words(2));
    forget(missing, 0, record_words(2));
    Memory<float> partial(missing);
    result.push_back(signatures_of(
        1, [&](uint8_t *receipt) { fold(partial.address(), segment.address(), records.address(), 2, 1, receipt); }));
    result.push_back(bits_of(reinterpret_cast<const float *>(records.address())[record_flags(2)]));
    return result;
}

// The coefficients of tensors that have a record each.
Output solve_plain(uint32_t radix, float tolerance, float limit) {
    constexpr uint64_t TENSORS = 135;
    Memory<float> records(plain_records(TENSORS, radix));
    std::vector<uint64_t> references;
    std::vector<uint64_t> indices;
    for (uint64_t tensor = 0; tensor < TENSORS; ++tensor) {
        // A gap in the list.
        if (tensor == 40) {
            indices.push_back(0);
        }
        references.insert(references.end(), {indices.size(), 1});
        indices.push_back(tensor);
    }
    Memory<uint64_t> reference_table(references);
    Memory<uint64_t> index_table(indices);
    Memory<float> out(untouched(TENSORS * coefficient_words(radix)));
    uint64_t rule = static_cast<uint64_t>(bits_of(limit)) << 32 | bits_of(tolerance);
    on_blocks(1, [&](uint8_t *receipt) {
        coefficients(records.address(), reference_table.address(), index_table.address(), out.address(), radix, TENSORS,
                     rule, receipt);
    });
    return output_of(out, DTYPE_FLOAT);
}

Output run_coefficients() {
    constexpr uint64_t TENSORS = 150;
    std::vector<float> made = made_records(300, 2);
    Memory<float> records(made);
    std::vector<uint64_t> references;
    std::vector<uint64_t> indices;
    for (uint64_t tensor = 0; tensor < TENSORS; ++tensor) {
        // Tensors with one record from 111 on: the last ones leave the window.
        uint64_t count = tensor == 100 ? 200 : (tensor > 110 ? 1 : tensor % 3);
        references.insert(references.end(), {indices.size(), count});
        for (uint64_t i = 0; i < count; ++i) {
            indices.push_back((tensor * 7 + i / 4 * 11 + i % 4) % 300);
        }
    }
    Memory<uint64_t> reference_table(references);
    Memory<uint64_t> index_table(indices);
    Memory<float> out(untouched(TENSORS * coefficient_words(2)));
    on_blocks(BLOCKS, [&](uint8_t *receipt) {
        coefficients(records.address(), reference_table.address(), index_table.address(), out.address(), 2, TENSORS, 0,
                     receipt);
    });
    Output result = output_of(out, DTYPE_FLOAT);
    append(result, solve_plain(2, 0.0F, 0.0F));
    append(result, solve_plain(3, 0.001F, 0.0F));
    append(result, solve_plain(5, 0.0F, 0.7F));
    // The only record of tensor 1, which is the first of two blocks'.
    forget(made, indices[0], record_words(2));
    Memory<float> incomplete(made);
    result.push_back(signatures_of(BLOCKS, [&](uint8_t *receipt) {
        coefficients(incomplete.address(), reference_table.address(), index_table.address(), out.address(), 2, 4, 0,
                     receipt);
    }));
    const float *words = reinterpret_cast<const float *>(out.address()) + coefficient_words(2);
    const float *weights = words + COEFFICIENT_WEIGHT;
    result.insert(result.end(), {bits_of(words[COEFFICIENT_FLAGS]), is_finite(weights[0]), is_finite(weights[1])});
    // Damaged on its way: shifts by such an exponent would take very long, and mean nothing.
    made = made_records(300, 2);
    made[indices[0] * record_words(2) + record_exponents(2)] = 5000.0F;
    Memory<float> damaged(made);
    on_blocks(BLOCKS, [&](uint8_t *receipt) {
        coefficients(damaged.address(), reference_table.address(), index_table.address(), out.address(), 2, 4, 0,
                     receipt);
    });
    result.insert(result.end(), {bits_of(words[COEFFICIENT_FLAGS]), is_finite(weights[0]), is_finite(weights[1])});
    return result;
}

std::vector<float> weights_of(const Problem &problem, uint32_t radix) {
    std::vector<float> weights(problem.segment_count * coefficient_words(radix));
    for (uint64_t tensor = 0; tensor < problem.segment_count; ++tensor) {
        float *words = &weights[tensor * coefficient_words(radix)];
        for (uint32_t i = 0; i < radix; ++i) {
            words[COEFFICIENT_WEIGHT + i] = noise(tensor, i);
            words[coefficient_scale(radix) + i] = tensor % 4 == 1 ? 0.5F : 0.0F;
        }
        words[COEFFICIENT_POST] = tensor % 3 == 1 ? 2.0F : 0.0F;
    }
    return weights;
}

Output sum_of(const Problem &problem, uint32_t radix, uint64_t dtype, bool in_place, uint64_t copy_count = 2) {
    Vectors vectors(problem, radix, dtype);
    Memory<uint64_t> segments(problem.segments);
    Memory<float> table(weights_of(problem, radix));
    Memory<uint8_t> apart(std::vector<uint8_t>(problem.elements * bytes_of(dtype), 0xc1));
    Memory<uint8_t> &out = in_place ? *vectors.memory[0] : apart;
    // One copy apart, and one in place of a vector.
    Memory<uint8_t> copy(std::vector<uint8_t>(problem.elements * bytes_of(dtype), 0xc1));
    Memory<uint8_t> &last = *vectors.memory[radix - 1];
    Memory<uint64_t> copies({copy.number(), last.number()});
    on_blocks(BLOCKS, [&](uint8_t *receipt) {
        weighted_sum(vectors.table->address(), segments.address(), table.address(), out.address(), radix, dtype,
                     problem.segment_count, problem.units, copies.address(), copy_count, receipt);
    });
    Output result = output_of(out, dtype);
    append(result, output_of(copy, dtype));
    append(result, output_of(last, dtype));
    return result;
}

// Of three tensors, whose middle one has no weights: what it is, and how many blocks signed.
Output sum_without_weights() {
    Problem problem;
    for (uint64_t len : {UNIT, UNIT, UNIT}) {
        problem.add(len, 0);
    }
    Vectors vectors(problem, 2, DTYPE_FLOAT);
    Memory<uint64_t> segments(problem.segments);
    std::vector<float> weights = weights_of(problem, 2);
    forget(weights, 1, coefficient_words(2));
    Memory<float> table(weights);
    Memory<float> out(untouched(problem.elements));
    uint32_t signatures = signatures_of(3, [&](uint8_t *receipt) {
        weighted_sum(vectors.table->address(), segments.address(), table.address(), out.address(), 2, DTYPE_FLOAT, 3, 3,
                     nullptr, 0, receipt);
    });
    const float *sums = reinterpret_cast<const float *>(out.address());
    return {signatures, is_finite(sums[UNIT - 1]), is_finite(sums[UNIT]), is_finite(sums[2 * UNIT - 1]),
            is_finite(sums[2 * UNIT])};
}

Output run_weighted_sum() {
    Problem problem = small_problem();
    Output result = sum_of(problem, 2, DTYPE_FLOAT, true);
    append(result, sum_of(problem, 3, DTYPE_FLOAT, false));
    append(result, sum_of(problem, 2, DTYPE_FLOAT16, true));
    if (ADASUM_HAS_BF16) {
        append(result, sum_of(problem, 3, DTYPE_BF16, false));
    }
    Problem few;
    for (uint64_t len : {3, 0, 4097, 1500}) {
        few.add(len, 2);
    }
    append(result, sum_of(few, 1, DTYPE_FLOAT, false));
    append(result, sum_of(few, 8, DTYPE_FLOAT, false));
    // More tensors than the window has weights of, whose last ones are cut.
    Problem many;
    for (int i = 0; i < 70; ++i) {
        many.add(5, 0);
    }
    append(result, sum_of(many, 5, DTYPE_FLOAT, false));
    append(result, sum_without_weights());
    return result;
}

// Tensors of their own, as a fused buffer's problem describes them.
struct Tensors {
    Tensors(const Problem &problem, uint64_t dtype, bool filled) {
        std::vector<uint64_t> addresses;
        for (uint64_t tensor = 0; tensor < problem.segment_count; ++tensor) {
            uint64_t len = problem.segments[tensor * SEGMENT_WORDS + SEGMENT_LEN];
            std::vector<uint8_t> values(len * bytes_of(dtype), 0x3c);
            for (uint64_t i = 0; filled && i < len; ++i) {
                uint32_t bits = element_of(dtype, tensor, i, 1.0F);
                std::memcpy(&values[i * bytes_of(dtype)], &bits, bytes_of(dtype));
            }
            memory.emplace_back(new Memory<uint8_t>(values));
            addresses.push_back(memory.back()->number());
        }
        table.reset(new Memory<uint64_t>(addresses));
    }

    std::vector<std::unique_ptr<Memory<uint8_t>>> memory;
    std::unique_ptr<Memory<uint64_t>> table;
};

uint64_t bits_of_factor(float factor) { return bits_of(factor); }

Output packed(const Problem &problem, uint64_t from, uint64_t to, float factor) {
    Tensors tensors(problem, from, true);
    Memory<uint64_t> segments(problem.segments);
    Memory<uint8_t> fused(std::vector<uint8_t>(problem.elements * bytes_of(to), 0x3c));
    on_blocks(BLOCKS, [&](uint8_t *receipt) {
        pack(tensors.table->address(), segments.address(), fused.address(), bits_of_factor(factor), from, to,
             problem.segment_count, problem.segment_count, problem.units, receipt);
    });
    return output_of(fused, to);
}

Output unpacked(const Problem &problem, uint64_t from, uint64_t to, float factor) {
    Tensors tensors(problem, to, false);
    Memory<uint64_t> segments(problem.segments);
    Memory<uint8_t> fused(vector_of(problem, 0, from));
    on_blocks(BLOCKS, [&](uint8_t *receipt) {
        unpack(tensors.table->address(), segments.address(), fused.address(), bits_of_factor(factor), from, to,
               problem.segment_count, problem.segment_count, problem.units, receipt);
    });
    Output result;
    for (const auto &tensor : tensors.memory) {
        append(result, output_of(*tensor, to));
    }
    return result;
}

// Each kind of move, on a few lengths.
Output moves(Output (*move)(const Problem &, uint64_t, uint64_t, float)) {
    Problem few;
    for (uint64_t len : {3, 0, 4097, 500, 1, 17}) {
        few.add(len, 2);
    }
    Output result = move(small_problem(), DTYPE_FLOAT, DTYPE_FLOAT, 1.0F);
    append(result, move(few, DTYPE_FLOAT16, DTYPE_FLOAT16, 1.0F));
    append(result, move(few, DTYPE_FLOAT, DTYPE_FLOAT16, 0.5F));
    append(result, move(few, DTYPE_FLOAT16, DTYPE_FLOAT, 3.0F));
    append(result, move(few, DTYPE_FLOAT, DTYPE_FLOAT, 3.0F));
    if (ADASUM_HAS_BF16) {
        append(result, move(few, DTYPE_BF16, DTYPE_FLOAT, 1.0F));
        append(result, move(few, DTYPE_FLOAT16, DTYPE_BF16, 0.5F));
    }
    return result;
}

Output run_pack() { return moves(packed); }
Output run_unpack() { return moves(unpacked); }

Output difference(uint64_t dtype, uint64_t count, bool in_place) {
    Problem problem;
    problem.add(count, 0);
    Vectors vectors(problem, 3, dtype);
    Memory<uint8_t> &out = *vectors.memory[in_place ? 0 : 2];
    on_blocks(BLOCKS, [&](uint8_t *receipt) {
        subtract(vectors.memory[0]->address(), vectors.memory[1]->address(), out.address(), dtype, count, receipt);
    });
    return output_of(out, dtype);
}

Output run_subtract() {
    Output result = difference(DTYPE_FLOAT, 9003, true);
    append(result, difference(DTYPE_FLOAT16, 4097, false));
    append(result, difference(DTYPE_FLOAT, 5, false));
    if (ADASUM_HAS_BF16) {
        append(result, difference(DTYPE_BF16, 8200, true));
    }
    return result;
}

Output checked(const Problem &problem, uint64_t dtype) {
    std::vector<uint8_t> values = vector_of(problem, 0, dtype);
    for (uint64_t segment = 0; segment < problem.segment_count; segment += 3) {
        const uint64_t *words = &problem.segments[segment * SEGMENT_WORDS];
        if (words[SEGMENT_LEN] > 0) {
            uint32_t infinity = dtype == DTYPE_FLOAT ? 0x7f800000 : dtype == DTYPE_BF16 ? 0x7f80 : 0x7c00;
            uint64_t first = words[SEGMENT_OFFSET];
            std::memcpy(&values[first * bytes_of(dtype)], &infinity, bytes_of(dtype));
            uint64_t last = first + words[SEGMENT_LEN] - 1;
            std::memcpy(&values[last * bytes_of(dtype)], &infinity, bytes_of(dtype));
        }
    }
    Memory<uint8_t> vector(values);
    Memory<uint64_t> segments(problem.segments);
    Memory<float> flags(std::vector<float>(problem.segment_count * FLAG_WORDS));
    on_blocks(BLOCKS, [&](uint8_t *receipt) {
        finite_check(vector.address(), segments.address(), flags.address(), dtype, problem.segment_count, problem.units,
                     receipt);
    });
    return output_of(flags, DTYPE_FLOAT);
}

Output run_finite_check() {
    Problem few;
    for (uint64_t len : {20000, 7, 513, 4096}) {
        few.add(len, 1);
    }
    Output result = checked(small_problem(), DTYPE_FLOAT);
    append(result, checked(few, DTYPE_FLOAT16));
    if (ADASUM_HAS_BF16) {
        append(result, checked(few, DTYPE_BF16));
    }
    return result;
}

// Tensors of 17 elements behind a guard that expects `due` signatures and finds `found`, where an earlier one has told
// `told`: the first bits of each, those of the receipt and of the reason, and whether the kernel went on.
Output guarded(uint64_t count, uint32_t size, float due, float found, float told = 0.0F, uint64_t then = 0) {
    std::vector<std::unique_ptr<Memory<uint8_t>>> tensors;
    std::vector<uint64_t> addresses;
    for (uint64_t i = 0; i < count; ++i) {
        tensors.emplace_back(new Memory<uint8_t>(std::vector<uint8_t>(17 * size, 0x3c)));
        addresses.push_back(tensors.back()->number());
    }
    Memory<uint64_t> places(addresses);
    std::vector<float> words(16);
    words[0] = found;
    Memory<float> receipt(words);
    words[0] = told;
    Memory<float> reason(words);
    Output result;
    ascend_mock_set_block(0, 1);
    try {
        guard(receipt.address(), bits_of(due) | then, places.address(), count, size, reason.address());
        result.push_back(1);
    } catch (const std::exception &) {
        result.push_back(0);
    }
    // What comes behind an element that is spoilt is results on every chip but one.
    uint32_t looked_at = ADASUM_WHOLE_BLOCKS ? size : 2 * size;
    for (const auto &tensor : tensors) {
        result.push_back(0);
        std::memcpy(&result.back(), tensor->address(), size);
        result.push_back(static_cast<uint32_t>(std::memcmp(tensor->address() + looked_at, "<<<<", size)));
    }
    result.push_back(bits_of(reinterpret_cast<const float *>(receipt.address())[0]));
    result.push_back(bits_of(reinterpret_cast<const float *>(reason.address())[0]));
    return result;
}

Output run_guard() {
    Output result;
    for (uint64_t count : {0, 1, 9, 150}) {
        for (uint32_t size : {4U, 2U}) {
            append(result, guarded(count, size, 96.0F, 96.0F));
            append(result, guarded(count, size, 96.0F, 95.0F));
            append(result, guarded(count, size, 48.0F, 0.0F));
            append(result, guarded(count, size, 48.0F, 46.0F + 2 * 4096.0F));
            append(result, guarded(count, size, 48.0F, 45.0F + 2 * 4096.0F));
            append(result, guarded(count, size, 48.0F, 0.0F, 2.0F));
            append(result, guarded(count, size, 48.0F, 0.0F, 0.0F, GUARD_GOES_ON));
            append(result, guarded(count, size, 0.0F, float_of(0xffffffffU)));
        }
    }
    return result;
}

#include "kernel_far.h"

uint64_t digest_of(const Output &output) {
    uint64_t digest = 0xcbf29ce484222325ULL;
    for (uint32_t word : output) {
        digest = (digest ^ word) * 0x100000001b3ULL;
    }
    return digest;
}

struct Kernel {
    const char *name;
    bool linked;
    Output (*run)();
    Output (*run_at)(uint64_t far); // null where nothing is far
};

// Whether the kernel does the same far away, and does something.
bool run_far(const Kernel &kernel) {
    Output near = kernel.run_at(0);
    bool same = kernel.run_at(FAR) == near;
    std::printf("%s far %s %016llx\n", kernel.name, same ? "as near" : "is other data",
                static_cast<unsigned long long>(digest_of(near)));
    return same;
}

bool run(const Kernel &kernel) {
    bool strict = adasum_strict_schedule != nullptr;
    uint64_t digest = 0;
    for (int64_t schedule = 0; schedule < (strict ? SCHEDULES : 1); ++schedule) {
        if (strict) {
            adasum_strict_schedule(schedule);
        }
        uint64_t next = digest_of(kernel.run());
        if (schedule > 0 && next != digest) {
            std::printf("%s: schedule %lld gives other data\n", kernel.name, static_cast<long long>(schedule));
            return false;
        }
        digest = next;
    }
    std::printf("%s %016llx\n", kernel.name, static_cast<unsigned long long>(digest));
    return true;
}

// What the strict twin counts while a kernel runs, on a line: kernel, bytes of an element, radix, tensors, elements, and the
// counts in the order of strict/interface.h.
template <typename Run>
void print_counted(const char *kernel, uint64_t dtype, uint32_t radix, const Problem &problem, Run run) {
    uint64_t before[ADASUM_STRICT_COUNTS];
    for (uint64_t what = 0; what < ADASUM_STRICT_COUNTS; ++what) {
        before[what] = adasum_strict_count(what);
    }
    run();
    std::printf("%s %u %u %llu %llu", kernel, bytes_of(dtype), radix,
                static_cast<unsigned long long>(problem.segment_count),
                static_cast<unsigned long long>(problem.elements));
    for (uint64_t what = 0; what < ADASUM_STRICT_COUNTS; ++what) {
        std::printf(" %llu", static_cast<unsigned long long>(adasum_strict_count(what) - before[what]));
    }
    std::printf("\n");
}

// Tensors of one record each, on one block as on a core of a chip with few of them.
void solve_each(const Problem &problem, uint32_t radix) {
    std::vector<float> made(problem.segment_count * record_words(radix));
    std::vector<uint64_t> references;
    std::vector<uint64_t> indices;
    for (uint64_t tensor = 0; tensor < problem.segment_count; ++tensor) {
        for (uint32_t i = 0; i < radix; ++i) {
            for (uint32_t j = i; j < radix; ++j) {
                made[tensor * record_words(radix) + 2 * entry_index(i, j, radix)] =
                    i == j ? 2.0F + noise(tensor, i) : 0.5F * noise(tensor, i * radix + j);
            }
        }
        references.insert(references.end(), {tensor, 1});
        indices.push_back(tensor);
    }
    Memory<float> records(made);
    Memory<uint64_t> reference_table(references);
    Memory<uint64_t> index_table(indices);
    Memory<float> out(untouched(problem.segment_count * coefficient_words(radix)));
    constexpr uint64_t WEIGHTS_ONLY = 0x80000000;
    on_blocks(1, [&](uint8_t *receipt) {
        coefficients(records.address(), reference_table.address(), index_table.address(), out.address(), radix,
                     problem.segment_count, WEIGHTS_ONLY, receipt);
    });
}

void print_counts() {
    Problem large;
    large.add(64 * UNIT + 7, 0);
    // One whose units have to be summed exactly as well.
    Problem alike;
    alike.add(64 * 1000 + 500, 0);
    Problem small;
    for (int tensor = 0; tensor < 128; ++tensor) {
        small.add(64, 0);
    }
    adasum_strict_schedule(0);
    for (uint64_t dtype : {DTYPE_FLOAT, DTYPE_BF16}) {
        for (uint32_t radix = 1; radix <= MAX_RADIX; ++radix) {
            for (const Problem *problem : {&large, &small}) {
                if (radix > 1) {
                    print_counted("gram", dtype, radix, *problem, [&] { gram_of(*problem, radix, dtype); });
                }
                print_counted("weighted_sum", dtype, radix, *problem,
                              [&] { sum_of(*problem, radix, dtype, false, 0); });
            }
            if (radix > 2) {
                print_counted("gram_exact", dtype, radix, alike, [&] { gram_of(alike, radix, dtype); });
            }
            if (radix > 1 && dtype == DTYPE_FLOAT) {
                print_counted("coefficients", dtype, radix, small, [&] { solve_each(small, radix); });
            }
        }
        print_counted("subtract", dtype, 2, large, [&] { difference(dtype, large.elements, false); });
        print_counted("finite_check", dtype, 1, large, [&] { checked(large, dtype); });
        print_counted("pack", dtype, 1, large, [&] { packed(large, dtype, DTYPE_FLOAT, 0.5F); });
        print_counted("unpack", dtype, 1, large, [&] { unpacked(large, DTYPE_FLOAT, dtype, 0.5F); });
    }
}

} // namespace

int main(int count, char **arguments) {
    const Kernel kernels[] = {{"gram", gram != nullptr, run_gram, gram_at},
                              {"fold", fold != nullptr, run_fold, fold_at},
                              {"coefficients", coefficients != nullptr, run_coefficients, coefficients_at},
                              {"weighted_sum", weighted_sum != nullptr, run_weighted_sum, sum_at},
                              {"pack", pack != nullptr, run_pack, pack_at},
                              {"unpack", unpack != nullptr, run_unpack, unpack_at},
                              {"subtract", subtract != nullptr, run_subtract, subtract_at},
                              {"finite_check", finite_check != nullptr, run_finite_check, check_at},
                              {"guard", guard != nullptr, run_guard, nullptr}};
    if (ascend_mock_set_finder != nullptr) {
        ascend_mock_set_finder(find_memory);
    }
    bool good = true;
    for (int i = 1; i < count; ++i) {
        std::string argument = arguments[i];
        bool known = argument == "--no-races" || argument == "--counts" || argument == "--far";
        if (argument == "--no-races") {
            adasum_strict_races(0);
        } else if (argument == "--counts") {
            print_counts();
        }
        for (const Kernel &kernel : kernels) {
            if (argument == kernel.name && kernel.linked) {
                good = run(kernel) && good;
                known = true;
            } else if (argument == "--far" && kernel.linked && kernel.run_at != nullptr) {
                good = run_far(kernel) && good;
            }
        }
        if (!known) {
            std::fprintf(stderr, "%s: no such kernel here\n", argument.c_str());
            return 2;
        }
    }
    return good ? 0 : 1;
}
