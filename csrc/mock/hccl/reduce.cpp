#include "reduce.h"

#include <type_traits>

#include "failure.h"

namespace mock {
namespace {

constexpr uint64_t LANES = 1024; // elements at a time: the accumulators stay in the first cache

float float_of(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

uint32_t bits_of(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}

// How an element lies in memory (Stored) and what it is computed in (Value).
template <class Type> struct Plain {
    using Stored = Type;
    using Value = Type;
    static Value load(Stored stored) { return stored; }
    static Stored store(Value value) { return value; }
};

struct Half {
    using Stored = uint16_t;
    using Value = float;
    static float load(uint16_t half) {
        const uint32_t magnitude = static_cast<uint32_t>(half & 0x7fff) << 13;
        const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
        const float scaled = float_of(magnitude) * 0x1p112f; // moves the exponent, subnormals too
        const uint32_t special = magnitude >= 0x0f800000 ? 0x7f800000 : 0; // infinity and NaN
        return float_of(bits_of(scaled) | special | sign);
    }
    static uint16_t store(float value) {
        const uint32_t bits = bits_of(value);
        const uint32_t magnitude = bits & 0x7fffffff;
        const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
        if (magnitude >= 0x47800000) { // from 65536 on
            return static_cast<uint16_t>(sign | (magnitude > 0x7f800000 ? 0x7e00 : 0x7c00));
        }
        if (magnitude < 0x38800000) { // subnormal: 0.5 has the spacing that is due
            return static_cast<uint16_t>(sign | (bits_of(float_of(magnitude) + 0.5F) - bits_of(0.5F)));
        }
        const uint32_t rounded = magnitude - (112U << 23) + 0xfff + ((magnitude >> 13) & 1);
        return static_cast<uint16_t>(sign | (rounded >> 13));
    }
};

struct Brain {
    using Stored = uint16_t;
    using Value = float;
    static float load(uint16_t brain) { return float_of(static_cast<uint32_t>(brain) << 16); }
    static uint16_t store(float value) {
        const uint32_t bits = bits_of(value);
        if ((bits & 0x7fffffff) > 0x7f800000) {
            return static_cast<uint16_t>((bits >> 16) | 0x40); // a quiet NaN
        }
        return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    }
};

// Integers wrap around; done without a sign, because C++ does not define it with one. Narrow ones go by way of 64 bits,
// since they would be promoted to int.
template <class Value> Value add(Value a, Value b) {
    if constexpr (std::is_integral<Value>::value) {
        return static_cast<Value>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    } else {
        return a + b;
    }
}

template <class Value> Value multiply(Value a, Value b) {
    if constexpr (std::is_integral<Value>::value) {
        return static_cast<Value>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
        return a * b;
    }
}

template <class Format, class Combine>
void reduce_with(char *target, const std::vector<const char *> &sources, uint64_t count, Combine combine) {
    using Stored = typename Format::Stored;
    using Value = typename Format::Value;
    Value sums[LANES];
    for (uint64_t first = 0; first < count; first += LANES) {
        const uint64_t lanes = count - first < LANES ? count - first : LANES;
        const auto *source = reinterpret_cast<const Stored *>(sources[0]) + first;
        for (uint64_t i = 0; i < lanes; i++) {
            sums[i] = Format::load(source[i]);
        }
        for (size_t rank = 1; rank < sources.size(); rank++) {
            source = reinterpret_cast<const Stored *>(sources[rank]) + first;
            for (uint64_t i = 0; i < lanes; i++) {
                sums[i] = combine(sums[i], Format::load(source[i]));
            }
        }
        auto *out = reinterpret_cast<Stored *>(target) + first;
        for (uint64_t i = 0; i < lanes; i++) {
            out[i] = Format::store(sums[i]);
        }
    }
}

template <class Format>
void reduce_as(uint32_t op, char *target, const std::vector<const char *> &sources, uint64_t count) {
    using Value = typename Format::Value;
    switch (op) {
    case HCCL_REDUCE_SUM:
        return reduce_with<Format>(target, sources, count, [](Value a, Value b) { return add(a, b); });
    case HCCL_REDUCE_PROD:
        return reduce_with<Format>(target, sources, count, [](Value a, Value b) { return multiply(a, b); });
    case HCCL_REDUCE_MAX:
        return reduce_with<Format>(target, sources, count, [](Value a, Value b) { return a < b ? b : a; });
    case HCCL_REDUCE_MIN:
        return reduce_with<Format>(target, sources, count, [](Value a, Value b) { return b < a ? b : a; });
    default:
        fault(HCCL_E_INTERNAL, "EI9999: reduction %u", op);
    }
}

} // namespace

void reduce(uint32_t dtype, uint32_t op, char *target, const std::vector<const char *> &sources, uint64_t count) {
    switch (dtype) {
    case HCCL_DATA_TYPE_INT8: return reduce_as<Plain<int8_t>>(op, target, sources, count);
    case HCCL_DATA_TYPE_INT16: return reduce_as<Plain<int16_t>>(op, target, sources, count);
    case HCCL_DATA_TYPE_INT32: return reduce_as<Plain<int32_t>>(op, target, sources, count);
    case HCCL_DATA_TYPE_INT64: return reduce_as<Plain<int64_t>>(op, target, sources, count);
    case HCCL_DATA_TYPE_UINT64: return reduce_as<Plain<uint64_t>>(op, target, sources, count);
    case HCCL_DATA_TYPE_FP16: return reduce_as<Half>(op, target, sources, count);
    case HCCL_DATA_TYPE_FP32: return reduce_as<Plain<float>>(op, target, sources, count);
    case HCCL_DATA_TYPE_FP64: return reduce_as<Plain<double>>(op, target, sources, count);
    case HCCL_DATA_TYPE_BFP16: return reduce_as<Brain>(op, target, sources, count);
    default: fault(HCCL_E_INTERNAL, "EI9999: a reduction of data type %u", dtype);
    }
}

} // namespace mock
