// Copies between host and devices, with their bounds checked.

#include <cstring>

#include "arena.h"
#include "common.h"
#include "counters.h"
#include "deviate.h"
#include "device.h"
#include "host_memory.h"
#include "sharing.h"
#include "stream.h"

namespace mock {
namespace {

void check_device_side(const void *address, size_t count, const char *side) {
    Region region;
    if (!find_memory(address, &region)) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "%s %p is not device memory%s", side, address,
             is_imported(address) ? " any more: the process that shared it has closed or freed it" : "");
    }
    if (count > region.bytes) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu bytes from %p on, but its allocation ends after %llu", side, count,
             address, static_cast<unsigned long long>(region.bytes));
    }
}

void check_host_side(const void *address, const char *side) {
    if (is_device_memory(address)) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "%s %p is device memory, but the kind of copy says host", side, address);
    }
}

void check_any_side(const void *address, size_t count, const char *side) {
    if (is_device_memory(address)) {
        check_device_side(address, count, side);
    }
}

// What another device's process has shared: copies in stream order, and from device to device, are all that is documented.
void check_imported(const void *address, aclrtMemcpyKind kind, bool in_stream, const char *side) {
    const bool between_devices = kind == ACL_MEMCPY_DEVICE_TO_DEVICE || kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE ||
                                 kind == ACL_MEMCPY_INTER_DEVICE_TO_DEVICE;
    if ((!between_devices || !in_stream) && is_across_devices(address)) {
        fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
             "%s %p is imported from another device: it is copied with ACL_MEMCPY_DEVICE_TO_DEVICE on a stream only",
             side, address);
    }
}

void check_copy(const void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind, bool in_stream) {
    require(dst, "dst");
    require(src, "src");
    if (count > destMax) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "count %zu is larger than destMax %zu", count, destMax);
    }
    check_imported(dst, kind, in_stream, "dst");
    check_imported(src, kind, in_stream, "src");
    switch (kind) {
    case ACL_MEMCPY_HOST_TO_HOST:
        check_host_side(dst, "dst");
        check_host_side(src, "src");
        return;
    case ACL_MEMCPY_HOST_TO_DEVICE:
    case ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE:
        check_device_side(dst, count, "dst");
        check_host_side(src, "src");
        return;
    case ACL_MEMCPY_DEVICE_TO_HOST:
        check_host_side(dst, "dst");
        check_device_side(src, count, "src");
        return;
    case ACL_MEMCPY_DEVICE_TO_DEVICE:
    case ACL_MEMCPY_INNER_DEVICE_TO_DEVICE:
    case ACL_MEMCPY_INTER_DEVICE_TO_DEVICE:
        check_device_side(dst, count, "dst");
        check_device_side(src, count, "src");
        return;
    case ACL_MEMCPY_DEFAULT:
        check_any_side(dst, count, "dst");
        check_any_side(src, count, "src");
        return;
    }
    fail(ACL_ERROR_INVALID_PARAM, "no kind of copy has number %d", static_cast<int>(kind));
}

void check_set(const void *address, size_t maxCount, size_t count) {
    require(address, "devPtr");
    if (count > maxCount) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "count %zu is larger than maxCount %zu", count, maxCount);
    }
    check_any_side(address, count, "devPtr");
}

int physical_device_of(const Region &region) {
    return region.imported ? region.device : physical_device(region.device);
}

// The vendor's documents ask for access between the devices first, and do not say what happens without it.
void warn_of_peers(const void *dst, const void *src) {
    Region to;
    Region from;
    if (!find_memory(dst, &to) || !find_memory(src, &from)) {
        return;
    }
    const int target = physical_device_of(to);
    const int source = physical_device_of(from);
    if (target != source && !peers_have_access(target, source)) {
        warn_once(format("a copy from device %d to device %d without aclrtDeviceEnablePeerAccess between them", source,
                         target));
    }
}

void move(void *dst, const void *src, size_t bytes) {
    copy_bytes(dst, src, bytes);
    const bool to_device = is_device_memory(dst);
    const bool from_device = is_device_memory(src);
    if (to_device || from_device) {
        flip_last(!from_device ? Deviation::CopyH2D : to_device ? Deviation::CopyD2D : Deviation::CopyD2H, dst, bytes);
    }
}

void set(void *address, int32_t value, size_t bytes) {
    std::memset(address, value, bytes);
    flip_last(Deviation::Memset, address, bytes);
}

bool is_pageable(const void *address) { return !is_device_memory(address) && !is_pinned(address); }

// Refuses copies within the host. Says whether the copy may happen later: memory that the host may take away is read or
// written in the call, after what the stream has queued.
bool may_wait(Stream &stream, const void *dst, const void *src) {
    if (!is_device_memory(dst) && !is_device_memory(src)) {
        fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "an asynchronous copy within the host");
    }
    if (!is_pageable(dst) && !is_pageable(src)) {
        return true;
    }
    stream.synchronize(-1);
    return false;
}

// Rows of `width` bytes, `pitch` apart.
struct Rows {
    void *dst;
    size_t dst_pitch;
    const void *src;
    size_t src_pitch;
    size_t width;
    size_t height;

    void move_all() const {
        for (size_t row = 0; row < height; row++) {
            move(static_cast<char *>(dst) + row * dst_pitch, static_cast<const char *>(src) + row * src_pitch, width);
        }
    }
    void check(aclrtMemcpyKind kind, bool in_stream) const {
        constexpr size_t WIDEST = 5000000;
        constexpr size_t HIGHEST = 5ULL << 20;
        require(static_cast<char *>(dst), "dst");
        require(static_cast<const char *>(src), "src");
        if (width > src_pitch || width > dst_pitch) {
            fail(ACL_ERROR_INVALID_PARAM, "width %zu is larger than spitch %zu or dpitch %zu", width, src_pitch,
                 dst_pitch);
        }
        if (kind != ACL_MEMCPY_HOST_TO_DEVICE && kind != ACL_MEMCPY_DEVICE_TO_HOST &&
            kind != ACL_MEMCPY_DEVICE_TO_DEVICE && kind != ACL_MEMCPY_DEFAULT) {
            fail(ACL_ERROR_INVALID_PARAM, "rows are not copied with kind %d", static_cast<int>(kind));
        }
        if (width > WIDEST || height > HIGHEST) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "width %zu and height %zu: %zu and %zu are the most", width, height,
                 WIDEST, HIGHEST);
        }
        check_rows(dst, dst_pitch,
                   kind == ACL_MEMCPY_DEFAULT ? is_device_memory(dst) : kind != ACL_MEMCPY_DEVICE_TO_HOST, "dst");
        check_rows(src, src_pitch,
                   kind == ACL_MEMCPY_DEFAULT ? is_device_memory(src) : kind != ACL_MEMCPY_HOST_TO_DEVICE, "src");
        check_imported(dst, kind, in_stream, "dst");
        check_imported(src, kind, in_stream, "src");
        warn_of_peers(dst, src);
    }

private:
    void check_rows(const void *address, size_t pitch, bool on_device, const char *side) const {
        size_t bytes = 0;
        if (__builtin_mul_overflow(pitch, height - 1, &bytes) || __builtin_add_overflow(bytes, width, &bytes)) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu rows %zu bytes apart are outside any memory", side, height,
                 pitch);
        }
        if (on_device) {
            check_device_side(address, bytes, side);
        } else {
            check_host_side(address, side);
        }
    }
};

} // namespace
} // namespace mock

using namespace mock;

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind) {
    return guarded("aclrtMemcpy", [&] {
        require_device();
        check_copy(dst, destMax, src, count, kind, false);
        warn_of_peers(dst, src);
        mock::count(Counter::HostSynchronizations);
        move(dst, src, count);
    });
}

// With HOST_TO_BUF_TO_DEVICE the source is read in the call, whatever memory it is.
aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream) {
    return guarded("aclrtMemcpyAsync", [&] {
        const std::shared_ptr<Stream> queue = usable_stream(stream);
        check_copy(dst, destMax, src, count, kind, true);
        warn_of_peers(dst, src);
        if (kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) {
            const auto *bytes = static_cast<const char *>(src);
            queue->push_brief("a copy", [dst, kept = std::vector<char>(bytes, bytes + count)](const Cancelled &) {
                std::memcpy(dst, kept.data(), kept.size());
                flip_last(Deviation::CopyH2D, dst, kept.size());
                return Outcome{};
            });
        } else if (may_wait(*queue, dst, src)) {
            queue->push_brief("a copy", [=](const Cancelled &) {
                move(dst, src, count);
                return Outcome{};
            });
        } else {
            mock::count(Counter::HostSynchronizations);
            move(dst, src, count);
        }
    });
}

// Between host and device only. Without rows, or with empty ones, nothing happens.
aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                       aclrtMemcpyKind kind) {
    return guarded("aclrtMemcpy2d", [&] {
        if (width == 0 || height == 0) {
            return;
        }
        require_device();
        const Rows rows{dst, dpitch, src, spitch, width, height};
        rows.check(kind, false);
        if (kind == ACL_MEMCPY_DEVICE_TO_DEVICE || is_device_memory(dst) == is_device_memory(src)) {
            fail(kind == ACL_MEMCPY_DEVICE_TO_DEVICE ? ACL_ERROR_RT_FEATURE_NOT_SUPPORT : ACL_ERROR_RT_PARAM_INVALID,
                 "rows are copied between host and device only");
        }
        mock::count(Counter::HostSynchronizations);
        rows.move_all();
    });
}

aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                            aclrtMemcpyKind kind, aclrtStream stream) {
    return guarded("aclrtMemcpy2dAsync", [&] {
        if (width == 0 || height == 0) {
            return;
        }
        const std::shared_ptr<Stream> queue = usable_stream(stream);
        const Rows rows{dst, dpitch, src, spitch, width, height};
        rows.check(kind, true);
        if (!is_device_memory(dst) && !is_device_memory(src)) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "rows are not copied within the host");
        }
        if (may_wait(*queue, dst, src)) {
            queue->push_brief("a copy of rows", [rows](const Cancelled &) {
                rows.move_all();
                return Outcome{};
            });
        } else {
            mock::count(Counter::HostSynchronizations);
            rows.move_all();
        }
    });
}

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count) {
    return guarded("aclrtMemset", [&] {
        require_device();
        check_set(devPtr, maxCount, count);
        mock::count(Counter::HostSynchronizations);
        set(devPtr, value, count);
    });
}

aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
    return guarded("aclrtMemsetAsync", [&] {
        const std::shared_ptr<Stream> queue = usable_stream(stream);
        check_set(devPtr, maxCount, count);
        if (!is_device_memory(devPtr)) { // out of turn, pinned memory too
            std::memset(devPtr, value, count);
            return;
        }
        queue->push_brief("a memset", [=](const Cancelled &) {
            set(devPtr, value, count);
            return Outcome{};
        });
    });
}
