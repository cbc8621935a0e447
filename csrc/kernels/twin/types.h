// The twin's 16-bit element types and their conversions, bit by bit: the same on every processor and compiler.
//
// They carry no arithmetic, as no kernel may compute in them.
#ifndef ADASUM_TWIN_TYPES_H
#define ADASUM_TWIN_TYPES_H

#include <cstdint>
#include <cstring>

struct half {
    uint16_t bits;
};

struct bfloat16_t {
    uint16_t bits;
};

namespace AscendC {
namespace twin {

inline uint32_t to_bits(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}

inline float from_bits(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

// The arithmetic below has no branches, so that loops over it become vector code.

inline void convert(half from, float &to) {
    uint32_t magnitude = from.bits & 0x7fffU;
    // The exponent is off by 112, also that of a subnormal.
    uint32_t bits = to_bits(from_bits(magnitude << 13) * from_bits((127U + 112U) << 23));
    // The largest exponent stands for infinity and NaN, which stays one and turns quiet.
    bits |= magnitude >= 0x7c00U ? 0x7f800000U : 0U;
    bits |= magnitude > 0x7c00U ? 0x00400000U : 0U;
    to = from_bits(bits | (from.bits & 0x8000U) << 16);
}

inline void convert(bfloat16_t from, float &to) { to = from_bits(static_cast<uint32_t>(from.bits) << 16); }

// To nearest, ties to even; what is too large becomes an infinity.
inline void convert(float from, half &to) {
    uint32_t bits = to_bits(from);
    uint32_t sign = bits >> 16 & 0x8000U;
    uint32_t magnitude = bits & 0x7fffffffU;
    // Below 2^-14 the addition of 0.5 rounds at the last bit of a subnormal.
    uint32_t small = to_bits(from_bits(magnitude < 0x38800000U ? magnitude : 0U) + 0.5f) - 0x3f000000U;
    uint32_t normal = (magnitude + 0xfffU + (magnitude >> 13 & 1U) - (112U << 23)) >> 13;
    uint32_t rounded = magnitude < 0x38800000U ? small : normal;
    rounded = magnitude >= 0x47800000U ? 0x7c00U : rounded;
    rounded = magnitude > 0x7f800000U ? 0x7e00U : rounded;
    to.bits = static_cast<uint16_t>(sign | rounded);
}

inline void convert(float from, bfloat16_t &to) {
    uint32_t bits = to_bits(from);
    uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
    uint32_t quiet = bits >> 16 | 0x40U;
    to.bits = static_cast<uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
}

} // namespace twin
} // namespace AscendC

#endif
