#include "reduce.h"

#include "failure.h"
#include "number.h"

namespace mock {
namespace {

constexpr uint64_t LANES = 1024; // elements at a time: the accumulators stay in the first cache

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
    default: fault(HCCL_E_INTERNAL, "EI9999: reduction %u", op);
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
