// As many fp32 numbers as a register holds: what the fused steps of the twin compute with.
//
// Conversions give the bits of those in types.h, by instructions of the processor where it has them.
#ifndef ADASUM_TWIN_LANES_H
#define ADASUM_TWIN_LANES_H

#include <cstdint>
#include <cstring>

#include "types.h"

#if defined(__F16C__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace AscendC {
namespace twin {

#if defined(__AVX512F__)
constexpr uint32_t REGISTER_BYTES = 64;
#elif defined(__AVX__)
constexpr uint32_t REGISTER_BYTES = 32;
#else
constexpr uint32_t REGISTER_BYTES = 16;
#endif
constexpr uint32_t REGISTER_LANES = REGISTER_BYTES / 4;

typedef float Lanes __attribute__((vector_size(REGISTER_BYTES)));
typedef uint32_t LaneBits __attribute__((vector_size(REGISTER_BYTES)));
typedef uint16_t ShortBits __attribute__((vector_size(REGISTER_BYTES / 2)));

inline Lanes load_lanes(const float *from) {
    Lanes lanes;
    std::memcpy(&lanes, from, sizeof(lanes));
    return lanes;
}

inline void store_lanes(float *to, const Lanes &lanes) { std::memcpy(to, &lanes, sizeof(lanes)); }

// 16 bits a lane to 32 and back. Compilers do not find the instructions behind a conversion of vectors.
#if defined(__AVX512F__)

inline LaneBits load_shorts(const void *from) {
    __m256i shorts;
    std::memcpy(&shorts, from, sizeof(shorts));
    return reinterpret_cast<LaneBits>(_mm512_maskz_cvtepu16_epi32(0xffffU, shorts));
}

inline void store_shorts(void *to, const LaneBits &bits) {
    __m256i shorts = _mm512_maskz_cvtepi32_epi16(0xffffU, reinterpret_cast<__m512i>(bits));
    std::memcpy(to, &shorts, sizeof(shorts));
}

#elif defined(__AVX2__)

inline LaneBits load_shorts(const void *from) {
    __m128i shorts;
    std::memcpy(&shorts, from, sizeof(shorts));
    return reinterpret_cast<LaneBits>(_mm256_cvtepu16_epi32(shorts));
}

// No number has more than 16 bits.
inline void store_shorts(void *to, const LaneBits &bits) {
    __m256i whole = reinterpret_cast<__m256i>(bits);
    __m128i shorts = _mm_packus_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    std::memcpy(to, &shorts, sizeof(shorts));
}

#else

inline LaneBits load_shorts(const void *from) {
    ShortBits shorts;
    std::memcpy(&shorts, from, sizeof(shorts));
    return __builtin_convertvector(shorts, LaneBits);
}

inline void store_shorts(void *to, const LaneBits &bits) {
    ShortBits shorts = __builtin_convertvector(bits, ShortBits);
    std::memcpy(to, &shorts, sizeof(shorts));
}

#endif

inline Lanes load_lanes(const bfloat16_t *from) {
    LaneBits bits = load_shorts(from) << 16;
    Lanes lanes;
    std::memcpy(&lanes, &bits, sizeof(lanes));
    return lanes;
}

inline void store_lanes(bfloat16_t *to, const Lanes &lanes) {
    LaneBits bits;
    std::memcpy(&bits, &lanes, sizeof(bits));
    LaneBits rounded = (bits + (0x7fffU + (bits >> 16 & 1U))) >> 16;
    LaneBits quiet = bits >> 16 | 0x40U;
    store_shorts(to, lanes == lanes ? rounded : quiet);
}

template <typename T>
inline void store_one_by_one(T *to, const Lanes &lanes) {
    for (uint32_t i = 0; i < REGISTER_LANES; ++i) {
        convert(lanes[i], to[i]);
    }
}

#if defined(__AVX512F__) && defined(__F16C__)

inline Lanes load_lanes(const half *from) {
    __m256i shorts;
    std::memcpy(&shorts, from, sizeof(shorts));
    return _mm512_maskz_cvtph_ps(0xffffU, shorts);
}

inline void store_lanes(half *to, const Lanes &lanes) {
    // The instruction keeps bits of a NaN.
    if (__builtin_expect(_mm512_cmp_ps_mask(lanes, lanes, _CMP_UNORD_Q) != 0, 0)) {
        store_one_by_one(to, lanes);
        return;
    }
    __m256i shorts = _mm512_maskz_cvtps_ph(0xffffU, lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    std::memcpy(to, &shorts, sizeof(shorts));
}

#elif defined(__AVX__) && defined(__F16C__)

inline Lanes load_lanes(const half *from) {
    __m128i shorts;
    std::memcpy(&shorts, from, sizeof(shorts));
    return _mm256_cvtph_ps(shorts);
}

inline void store_lanes(half *to, const Lanes &lanes) {
    // The instruction keeps bits of a NaN.
    if (__builtin_expect(_mm256_movemask_ps(_mm256_cmp_ps(lanes, lanes, _CMP_UNORD_Q)) != 0, 0)) {
        store_one_by_one(to, lanes);
        return;
    }
    __m128i shorts = _mm256_cvtps_ph(lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    std::memcpy(to, &shorts, sizeof(shorts));
}

#else

inline Lanes load_lanes(const half *from) {
    float values[REGISTER_LANES];
    for (uint32_t i = 0; i < REGISTER_LANES; ++i) {
        convert(from[i], values[i]);
    }
    return load_lanes(values);
}

inline void store_lanes(half *to, const Lanes &lanes) { store_one_by_one(to, lanes); }

#endif

// Numbers of lanes, for as many as any register has.
alignas(64) inline constexpr uint32_t LANE_NUMBERS[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// Lane i has what lane i ^ distance had; for a distance that is a power of two.
inline Lanes exchanged(const Lanes &lanes, uint32_t distance) {
#ifdef __clang__
    Lanes result;
    for (uint32_t i = 0; i < REGISTER_LANES; ++i) {
        result[i] = lanes[i ^ distance];
    }
    return result;
#else
    LaneBits from;
    std::memcpy(&from, LANE_NUMBERS, sizeof(from));
    return __builtin_shuffle(lanes, from ^ distance);
#endif
}

inline float load_one(const float *from) { return *from; }
inline void store_one(float *to, float value) { *to = value; }

template <typename T>
inline float load_one(const T *from) {
    float value;
    convert(*from, value);
    return value;
}

template <typename T>
inline void store_one(T *to, float value) {
    convert(value, *to);
}

} // namespace twin
} // namespace AscendC

#endif
