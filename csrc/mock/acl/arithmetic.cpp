// Arithmetic of the runtime: half precision on the host, and copies that reduce on their way.

#include "arena.h"
#include "device.h"
#include "number.h"
#include "stream.h"

namespace mock {
namespace {

struct Type {
    aclDataType number;
    size_t bytes;
};

const Type TYPES[] = {
    {ACL_FLOAT, 4},  {ACL_FLOAT16, 2}, {ACL_INT8, 1},   {ACL_INT32, 4}, {ACL_UINT8, 1},
    {ACL_INT16, 2},  {ACL_UINT16, 2},  {ACL_UINT32, 4}, {ACL_INT64, 8}, {ACL_UINT64, 8},
    {ACL_DOUBLE, 8}, {ACL_BOOL, 1},    {ACL_BF16, 2},
};

size_t type_bytes(aclDataType number) {
    for (const Type &type : TYPES) {
        if (type.number == number) {
            return type.bytes;
        }
    }
    return 0;
}

// A2 and A3 reduce small integers and floating point, the 910A only fp32.
bool reducible(aclDataType type) {
    switch (type) {
    case ACL_FLOAT: return true;
    case ACL_INT8:
    case ACL_INT16:
    case ACL_INT32:
    case ACL_FLOAT16:
    case ACL_BF16: return family() != Family::Ascend910A;
    default: return false;
    }
}

template <class Format>
void reduce(void *dst, const void *src, uint64_t count, aclrtReduceKind kind) {
    using Stored = typename Format::Stored;
    using Value = typename Format::Value;
    auto *out = static_cast<Stored *>(dst);
    const auto *in = static_cast<const Stored *>(src);
    for (uint64_t i = 0; i < count; i++) {
        const Value a = Format::load(out[i]);
        const Value b = Format::load(in[i]);
        switch (kind) {
        case ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM: out[i] = Format::store(add(a, b)); break;
        case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX: out[i] = Format::store(a < b ? b : a); break;
        default: out[i] = Format::store(b < a ? b : a);
        }
    }
}

void reduce_as(aclDataType type, void *dst, const void *src, uint64_t bytes, aclrtReduceKind kind) {
    const uint64_t count = bytes / type_bytes(type);
    switch (type) {
    case ACL_INT8: return reduce<Plain<int8_t>>(dst, src, count, kind);
    case ACL_INT16: return reduce<Plain<int16_t>>(dst, src, count, kind);
    case ACL_INT32: return reduce<Plain<int32_t>>(dst, src, count, kind);
    case ACL_FLOAT16: return reduce<Half>(dst, src, count, kind);
    case ACL_BF16: return reduce<Brain>(dst, src, count, kind);
    default: return reduce<Plain<float>>(dst, src, count, kind);
    }
}

void check_device_range(const void *address, uint64_t bytes, const char *name) {
    Region region;
    if (!find_memory(address, &region) || bytes > region.bytes) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "%s %p is not device memory of %llu bytes", name, address,
             static_cast<unsigned long long>(bytes));
    }
}

} // namespace
} // namespace mock

using namespace mock;

size_t aclDataTypeSize(aclDataType dataType) { return type_bytes(dataType); }

float aclFloat16ToFloat(aclFloat16 value) { return Half::load(value); }

aclFloat16 aclFloatToFloat16(float value) { return Half::store(value); }

// `count` is in bytes: dst = dst op src.
aclError aclrtReduceAsync(void *dst, const void *src, uint64_t count, aclrtReduceKind kind, aclDataType type,
                          aclrtStream stream, void *) {
    return guarded("aclrtReduceAsync", [&] {
        require(static_cast<char *>(dst), "dst");
        require(static_cast<const char *>(src), "src");
        const std::shared_ptr<Stream> queue = usable_stream(stream);
        if (kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL) {
            fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "a reduction of the kind EQUAL is not modelled");
        }
        if (kind < ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM || kind > ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL) {
            fail(ACL_ERROR_INVALID_PARAM, "no reduction has number %d", static_cast<int>(kind));
        }
        if (!reducible(type)) {
            fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "this processor does not reduce data type %d",
                 static_cast<int>(type));
        }
        if (count == 0 || count % type_bytes(type) != 0) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "count is %llu bytes, not a multiple of an element's %zu",
                 static_cast<unsigned long long>(count), type_bytes(type));
        }
        check_device_range(dst, count, "dst");
        check_device_range(src, count, "src");
        queue->push_brief("a reducing copy", [=](const Cancelled &) {
            reduce_as(type, dst, src, count, kind);
            return Outcome{};
        });
    });
}
