// Virtual memory: addresses are reserved in the arena, and physical memory is put behind parts of them.

#include <algorithm>
#include <cstring>
#include <utility>

#include <sys/mman.h>

#include "arena.h"
#include "counters.h"
#include "device.h"
#include "host_memory.h"
#include "mapping.h"
#include "physical.h"
#include "sharing.h"

namespace mock {
namespace {

// Another thread may have freed the last one meanwhile.
void require_handle(const Physical &memory) {
    if (memory.handles == 0) {
        fail(ACL_ERROR_RT_INVALID_HANDLE, "the physical memory is freed");
    }
}

} // namespace

void *Arena::reserve(uint64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    uint64_t offset = 0;
    return reserved_.allocate(round_up(bytes, HUGE_PAGE_BYTES), &offset) ? view_.base + offset : nullptr;
}

void Arena::unreserve(void *address) {
    const uint64_t offset = offset_of(address);
    uint64_t begin = 0;
    uint64_t bytes = 0;
    std::lock_guard<std::mutex> lock(mutex_);
    if (!reserved_.find(offset, &begin, &bytes) || begin != offset) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "%p is not what aclrtReserveMemAddress returned", address);
    }
    const auto first = mapped_.lower_bound(begin);
    if (first != mapped_.end() && first->first < begin + bytes) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "physical memory is still mapped to %p", view_.base + first->first);
    }
    reserved_.release(offset);
}

bool Arena::in_reservation(const void *address, uint64_t bytes) const {
    const uint64_t offset = offset_of(address);
    uint64_t begin = 0;
    uint64_t length = 0;
    std::lock_guard<std::mutex> lock(mutex_);
    return reserved_.find(offset, &begin, &length) && bytes <= begin + length - offset;
}

std::shared_ptr<Physical> Arena::allocate_physical(uint64_t bytes) {
    auto memory = std::make_shared<Physical>();
    memory->device = device_;
    memory->bytes = bytes;
    Ended ended;
    std::lock_guard<std::mutex> lock(mutex_);
    sweep(&ended);
    return allocate_seen(bytes, &memory->home) ? memory : nullptr;
}

// The memory itself ends when all processes that have it have freed it.
void Arena::end_physical(const std::shared_ptr<Physical> &memory, Ended *ended) {
    if (memory->imported != nullptr) {
        memory->imported->leave();
        return;
    }
    if (memory->shared != nullptr) {
        if (memory->shared->importers() > 0) {
            memory->shared->end(Sharing::Left);
            left_.push_back(memory);
            return;
        }
        ended->push_back(std::move(memory->shared));
    }
    give_pages_back(memory->home, memory_.release(memory->home));
}

void Arena::sweep(Ended *ended) {
    for (const auto &memory : std::exchange(left_, {})) {
        end_physical(memory, ended);
    }
}

bool Arena::hold_physical(Physical &memory) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (memory.handles == 0) {
        return false;
    }
    memory.handles++;
    return true;
}

bool Arena::free_physical(const std::shared_ptr<Physical> &memory) {
    Ended ended;
    std::lock_guard<std::mutex> lock(mutex_);
    require_handle(*memory);
    memory->handles--;
    if (memory->handles == 0 && !memory->mapped) {
        end_physical(memory, &ended);
    }
    return memory->handles == 0;
}

std::shared_ptr<SharedRange> Arena::shared(const Physical &memory) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return memory.shared;
}

std::string Arena::share_physical(Physical &memory, bool anyone) {
    if (memory.imported != nullptr) {
        fail(DRIVER_ERROR, "the memory is imported");
    }
    auto shared = std::make_shared<SharedRange>(device_, memory.home, memory.bytes, anyone);
    std::lock_guard<std::mutex> lock(mutex_);
    require_handle(memory);
    if (memory.shared != nullptr) {
        fail(DRIVER_ERROR, "the memory has a shared handle");
    }
    if (memory.mapped) {
        const auto mapping = std::find_if(mapped_.begin(), mapped_.end(),
                                          [&](const auto &entry) { return entry.second.get() == &memory; });
        std::memcpy(view_.base + memory.home, view_.base + mapping->first, memory.bytes);
        show(mapping->first, memory.bytes, view_.file, memory.home);
        give_pages_back(mapping->first, memory.bytes);
    }
    memory.shared = std::move(shared);
    return memory.shared->key();
}

void Arena::show(uint64_t offset, uint64_t bytes, int file, uint64_t place) {
    void *shown = mmap(view_.base + offset, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file,
                       static_cast<off_t>(place));
    if (shown == MAP_FAILED) {
        fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%llu bytes cannot be mapped (%s)", static_cast<unsigned long long>(bytes),
             std::strerror(errno));
    }
    madvise(shown, bytes, MADV_DONTDUMP);
}

void Arena::map(void *address, std::shared_ptr<Physical> memory) {
    const uint64_t offset = offset_of(address);
    std::lock_guard<std::mutex> lock(mutex_);
    const auto next = mapped_.lower_bound(offset);
    const bool overlaps_next = next != mapped_.end() && next->first < offset + memory->bytes;
    const bool overlaps_before =
        next != mapped_.begin() && std::prev(next)->first + std::prev(next)->second->bytes > offset;
    if (overlaps_next || overlaps_before) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "physical memory is mapped to a part of %p already", address);
    }
    require_handle(*memory);
    if (memory->mapped) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "the physical memory is mapped already");
    }
    if (memory->imported != nullptr) {
        show(offset, memory->bytes, memory->imported->file(), memory->imported->offset());
        add_imported(address, {memory->imported, true});
    } else if (memory->shared != nullptr) {
        show(offset, memory->bytes, view_.file, memory->home);
    } else if (memory->written) {
        std::memcpy(address, view_.base + memory->home, memory->bytes);
        give_pages_back(memory->home, memory->bytes);
    }
    memory->mapped = true;
    memory->written = true;
    mapped_.emplace(offset, std::move(memory));
}

void Arena::unmap(void *address) {
    const uint64_t offset = offset_of(address);
    Ended ended;
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = mapped_.find(offset);
    if (found == mapped_.end()) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "no mapping starts at %p", address);
    }
    const std::shared_ptr<Physical> memory = found->second;
    mapped_.erase(found);
    memory->mapped = false;
    if (memory->imported != nullptr || memory->shared != nullptr) {
        show(offset, memory->bytes, view_.file, offset);
    } else if (memory->handles > 0) {
        std::memcpy(view_.base + memory->home, address, memory->bytes);
    }
    if (memory->imported != nullptr) {
        remove_imported(address, memory->imported.get());
    }
    give_pages_back(offset, memory->bytes);
    if (memory->handles == 0) {
        end_physical(memory, &ended);
    }
}

// Mappings side by side are one range: `bytes` counts to the end of the last. What is shared lies elsewhere, for itself.
bool Arena::find_mapped(uint64_t offset, uint64_t *place, uint64_t *bytes) const {
    auto mapping = mapped_.upper_bound(offset);
    if (mapping == mapped_.begin()) {
        return false;
    }
    --mapping;
    const Physical &memory = *mapping->second;
    uint64_t end = mapping->first + memory.bytes;
    if (offset >= end || memory.imported != nullptr) {
        return false;
    }
    *place = memory.shared != nullptr ? memory.home + (offset - mapping->first) : offset;
    for (++mapping; memory.shared == nullptr && mapping != mapped_.end() && mapping->first == end &&
                    mapping->second->shared == nullptr && mapping->second->imported == nullptr;
         ++mapping) {
        end += mapping->second->bytes;
    }
    *bytes = end - offset;
    return true;
}

Registry<Physical> &physical() {
    static Registry<Physical> &object = *new Registry<Physical>;
    return object;
}

std::shared_ptr<Physical> find_physical(aclrtDrvMemHandle handle) {
    require(static_cast<char *>(handle), "handle");
    std::shared_ptr<Physical> found = physical().find(handle);
    if (found == nullptr) {
        fail(ACL_ERROR_RT_INVALID_HANDLE, "the handle is not physical memory");
    }
    return found;
}

namespace {

// The device that the memory is to be on.
int check_properties(const aclrtPhysicalMemProp *prop) {
    require(prop, "prop");
    if (prop->location.type != ACL_MEM_LOCATION_TYPE_DEVICE || prop->handleType != ACL_MEM_HANDLE_TYPE_NONE) {
        fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "only memory of a device that is not shared is modelled");
    }
    if (prop->allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "no kind of allocation has number %d", static_cast<int>(prop->allocationType));
    }
    switch (prop->memAttr) {
    case ACL_HBM_MEM_HUGE:
    case ACL_HBM_MEM_NORMAL:
    case ACL_HBM_MEM_P2P_HUGE:
    case ACL_HBM_MEM_P2P_NORMAL:
    case ACL_HBM_MEM_HUGE1G:
    case ACL_HBM_MEM_P2P_HUGE1G: break;
    default: fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "memAttr %d is not modelled", static_cast<int>(prop->memAttr));
    }
    check_device(prop->location.id);
    return static_cast<int>(prop->location.id);
}

void check_size(size_t size) {
    if (size == 0 || size % HUGE_PAGE_BYTES != 0) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "size is %zu: it must be a multiple of %zu", size, HUGE_PAGE_BYTES);
    }
}

void map_memory(void *address, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags) {
    require(static_cast<char *>(address), "virPtr");
    const std::shared_ptr<Physical> memory = find_physical(handle);
    check_size(size);
    if (offset != 0 || flags != 0 || size != memory->bytes) {
        fail(ACL_ERROR_RT_PARAM_INVALID,
             "offset %zu, flags %llu, size %zu: offset and flags must be 0, and size that of "
             "the physical memory, %llu",
             offset, static_cast<unsigned long long>(flags), size, static_cast<unsigned long long>(memory->bytes));
    }
    if (reinterpret_cast<uintptr_t>(address) % HUGE_PAGE_BYTES != 0) {
        fail(ACL_ERROR_RT_ADDR_UNALIGNED, "virPtr %p is not aligned to %zu bytes", address, HUGE_PAGE_BYTES);
    }
    Arena *owner = arena_of(address);
    if (owner == nullptr || !owner->in_reservation(address, size)) {
        fail(ACL_ERROR_RT_PARAM_INVALID, "%zu bytes from %p on are not in a reserved range", size, address);
    }
    if (owner != &arena(memory->device)) {
        fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "memory of device %d behind addresses that were reserved for another",
             memory->device);
    }
    owner->map(address, memory);
}

} // namespace
} // namespace mock

using namespace mock;

aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr, uint64_t flags) {
    return guarded("aclrtReserveMemAddress", [&] {
        require(virPtr, "virPtr");
        if (size == 0 || alignment != 0 || flags > 1) {
            fail(ACL_ERROR_RT_PARAM_INVALID,
                 "size %zu, alignment %zu, flags %llu: size must not be 0, alignment must be "
                 "0, flags 0 or 1",
                 size, alignment, static_cast<unsigned long long>(flags));
        }
        if (expectPtr != nullptr) {
            fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "a place of one's own choice (expectPtr) is not modelled");
        }
        void *made = arena(require_device()).reserve(size);
        if (made == nullptr) {
            fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "no %zu bytes of addresses are left", size);
        }
        *virPtr = made;
    });
}

aclError aclrtReleaseMemAddress(void *virPtr) {
    return guarded("aclrtReleaseMemAddress", [&] {
        require(static_cast<char *>(virPtr), "virPtr");
        Arena *owner = arena_of(virPtr);
        if (owner == nullptr) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "%p is not what aclrtReserveMemAddress returned", virPtr);
        }
        owner->unreserve(virPtr);
    });
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *prop, uint64_t flags) {
    return guarded("aclrtMallocPhysical", [&] {
        require(handle, "handle");
        const int device = check_properties(prop);
        check_size(size);
        if (flags != 0) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "flags is %llu: it must be 0", static_cast<unsigned long long>(flags));
        }
        if (size <= device_memory_bytes()) {
            require_host_memory(device, size);
        }
        std::shared_ptr<Physical> memory =
            size > device_memory_bytes() ? nullptr : arena(device).allocate_physical(size);
        if (memory == nullptr) {
            fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "device memory is exhausted: %zu bytes asked for", size);
        }
        *handle = physical().add(std::move(memory));
        count(Counter::DeviceAllocations);
    });
}

// Memory that is mapped stays until it is unmapped; its handle ends.
aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
    return guarded("aclrtFreePhysical", [&] {
        const std::shared_ptr<Physical> memory = find_physical(handle);
        if (arena(memory->device).free_physical(memory)) {
            physical().remove(handle);
        }
    });
}

aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags) {
    return guarded("aclrtMapMem", [&] { map_memory(virPtr, size, offset, handle, flags); });
}

aclError aclrtUnmapMem(void *virPtr) {
    return guarded("aclrtUnmapMem", [&] {
        require(static_cast<char *>(virPtr), "virPtr");
        Arena *owner = arena_of(virPtr);
        if (owner == nullptr) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "no mapping starts at %p", virPtr);
        }
        owner->unmap(virPtr);
    });
}

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop, aclrtMemGranularityOptions option,
                                          size_t *granularity) {
    return guarded("aclrtMemGetAllocationGranularity", [&] {
        require(granularity, "granularity");
        check_properties(prop);
        if (option != ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM && option != ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
            fail(ACL_ERROR_RT_PARAM_INVALID, "no granularity has number %d", static_cast<int>(option));
        }
        *granularity = HUGE_PAGE_BYTES;
    });
}
