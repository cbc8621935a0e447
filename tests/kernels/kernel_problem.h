// Device memory, problems and their data for programs that run kernels without the mock.
#ifndef KERNEL_PROBLEM_H
#define KERNEL_PROBLEM_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "arch.h"
#include "layout.h"

using namespace adasum;

// Where device memory begins, and its bytes.
inline std::map<uint64_t, uint64_t> allocations;

inline int find_memory(uint64_t address, uint64_t *left) {
    auto next = allocations.upper_bound(address);
    if (next == allocations.begin()) {
        return 0;
    }
    --next;
    if (address - next->first >= next->second) {
        return 0;
    }
    *left = next->first + next->second - address;
    return 1;
}

// Device memory on 64 bytes, in allocations of exactly as many bytes as were asked for; where chips copy whole blocks, of
// as many as aclrtMalloc gives.
template <typename T>
class Memory {
public:
    explicit Memory(const std::vector<T> &values) : count_(values.size()) {
        size_t bytes = count_ * sizeof(T);
        size_t given = ADASUM_WHOLE_BLOCKS ? (bytes + 31) / 32 * 32 + 32 : bytes;
        bytes_ = static_cast<uint8_t *>(std::aligned_alloc(64, (given + 127) / 64 * 64));
        std::memset(bytes_, 0, given);
        if (bytes > 0) {
            std::memcpy(bytes_, values.data(), bytes);
        }
        allocations[number()] = given;
    }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    ~Memory() {
        allocations.erase(number());
        std::free(bytes_);
    }

    uint8_t *address() const { return bytes_; }
    uint64_t number() const { return reinterpret_cast<uint64_t>(bytes_); }
    // Where the memory would begin if `count` more elements were in front of it. Nothing is there.
    uint8_t *behind(uint64_t count) const { return reinterpret_cast<uint8_t *>(number() - count * sizeof(T)); }
    size_t size() const { return count_; }

private:
    uint8_t *bytes_;
    size_t count_;
};

// A number in -1..1 that depends on both keys only.
inline float noise(uint64_t a, uint64_t b) {
    uint64_t state = 0x9e3779b97f4a7c15ULL ^ (a * 0xbf58476d1ce4e5b9ULL + b);
    for (int i = 0; i < 3; ++i) {
        state = (state ^ (state >> 29)) * 0x94d049bb133111ebULL;
    }
    return static_cast<float>(state >> 40) / 8388608.0F - 1.0F;
}

struct Problem {
    std::vector<uint64_t> segments; // words of the table
    uint64_t segment_count = 0;
    uint64_t units = 0;
    uint64_t elements = 0;

    void add(uint64_t len, uint64_t gap) {
        elements += gap;
        if (ADASUM_WHOLE_BLOCKS) {
            elements = (elements + 31) / 32 * 32;
        }
        const uint64_t words[SEGMENT_WORDS] = {elements, len, units, segment_count};
        segments.insert(segments.end(), words, words + SEGMENT_WORDS);
        elements += len;
        units += (len + UNIT - 1) / UNIT;
        ++segment_count;
    }
};

// Every kind of length, then more segments than the kernels' windows hold.
inline Problem small_problem() {
    Problem problem;
    for (uint64_t len :
         {0, 1, 3, 17, 64, 65, 255, 511, 512, 513, 1500, 2100, 2700, 3500, 4095, 4096, 4097, 9000, 0, 20000}) {
        problem.add(len, 5);
    }
    for (uint64_t i = 0; i < 300; ++i) {
        problem.add(i % 5, 0);
    }
    return problem;
}

inline uint32_t bytes_of(uint64_t dtype) { return dtype == DTYPE_FLOAT ? 4 : 2; }

// Element `at` of vector `index`, times a power of ten where the type has room for it.
inline uint32_t element_of(uint64_t dtype, uint64_t index, uint64_t at, float scale) {
    uint32_t bits;
    float value = noise(index, at) * scale;
    std::memcpy(&bits, &value, sizeof(bits));
    if (dtype == DTYPE_FLOAT) {
        return bits;
    }
    // Any 16 bits are a number, but for the largest exponents: here from 2^-5 to 2^6.
    return dtype == DTYPE_BF16 ? bits >> 16 : ((bits >> 8) & 0x83ff) | ((10 + bits % 12) << 10);
}

// Vector `index` of the problem: segments of all magnitudes, one that is zero, one with a NaN. Where a length ends in 500 the
// vectors differ in their last bits only, so that their Gram matrix has to be exact.
inline std::vector<uint8_t> vector_of(const Problem &problem, uint64_t index, uint64_t dtype) {
    uint32_t bytes = bytes_of(dtype);
    std::vector<uint8_t> values(problem.elements * bytes);
    for (uint64_t segment = 0; segment < problem.segment_count; ++segment) {
        const uint64_t *words = &problem.segments[segment * SEGMENT_WORDS];
        uint64_t len = words[SEGMENT_LEN];
        bool zero = len == 513 && index == 1;
        bool alike = len % 1000 == 500;
        float scale = len == 9000 || len == 4500 ? 1e30F : len == 4097 ? 1e-30F : 1.0F;
        for (uint64_t i = 0; i < len && !zero; ++i) {
            uint64_t at = words[SEGMENT_OFFSET] + i;
            uint32_t bits = element_of(dtype, alike ? 0 : index, at, scale);
            if (alike) {
                bits ^= static_cast<uint32_t>(at * (index + 3) / 7) % (dtype == DTYPE_FLOAT ? 4096 : 4);
            }
            if (dtype == DTYPE_FLOAT && len == 255 && index == 0 && i == 7) {
                bits = 0x7fc00000;
            }
            std::memcpy(&values[at * bytes], &bits, bytes);
        }
    }
    return values;
}

#endif
