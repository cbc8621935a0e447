#include "arena.h"

#include <shared_mutex>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "device.h"
#include "mapping.h"
#include "sharing.h"

namespace mock {
namespace {

constexpr uint64_t CONTROL_BYTES = 256ULL << 20;
constexpr uint64_t CONTROL_ALIGNMENT = 4096;
constexpr uint64_t MEMORY_ALIGNMENT = 512;
constexpr uint64_t RESERVATION_ALIGNMENT = HUGE_PAGE_BYTES;
constexpr uint64_t RESERVABLE_TIMES = 3;     // addresses that can be reserved, in device memories
constexpr uint64_t LARGE_BYTES = 1ULL << 20; // an allocation from here on gives its pages back when it is freed

struct Arenas {
    std::shared_mutex mutex;
    std::map<int, Arena *> by_device;
    std::map<const char *, Arena *> by_base;
};

Arenas &arenas() {
    static Arenas &object = *new Arenas;
    return object;
}

uint64_t reservations_begin() { return round_up(CONTROL_BYTES + device_memory_bytes(), RESERVATION_ALIGNMENT); }

} // namespace

uint64_t page_bytes(uint64_t bytes) {
    return bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : bytes >= PAGE_BYTES ? PAGE_BYTES : 0;
}

FirstFit::FirstFit(uint64_t begin, uint64_t end, uint64_t alignment)
    : alignment_(alignment), free_bytes_(end - begin), free_{{begin, end - begin}} {}

bool FirstFit::allocate(uint64_t bytes, uint64_t *offset, uint64_t alignment) {
    const uint64_t reserved = round_up(bytes, alignment_);
    if (reserved < bytes || reserved == 0) {
        return false;
    }
    for (auto range = free_.begin(); range != free_.end(); ++range) {
        *offset = round_up(range->first, alignment > alignment_ ? alignment : alignment_);
        const uint64_t skipped = *offset - range->first;
        if (range->second < skipped || range->second - skipped < reserved) {
            continue;
        }
        const uint64_t rest = range->second - skipped - reserved;
        if (skipped > 0) {
            range->second = skipped;
            ++range;
        } else {
            range = free_.erase(range);
        }
        if (rest > 0) {
            free_.emplace_hint(range, *offset + reserved, rest);
        }
        used_.emplace(*offset, Used{bytes, reserved});
        free_bytes_ -= reserved;
        return true;
    }
    return false;
}

uint64_t FirstFit::release(uint64_t offset) {
    const auto found = used_.find(offset);
    if (found == used_.end()) {
        return 0;
    }
    const uint64_t length = found->second.reserved;
    used_.erase(found);
    free_bytes_ += length;
    auto range = free_.emplace(offset, length).first;
    const auto next = std::next(range);
    if (next != free_.end() && range->first + range->second == next->first) {
        range->second += next->second;
        free_.erase(next);
    }
    if (range != free_.begin()) {
        const auto before = std::prev(range);
        if (before->first + before->second == range->first) {
            before->second += range->second;
            free_.erase(range);
        }
    }
    return length;
}

bool FirstFit::find(uint64_t offset, uint64_t *begin, uint64_t *bytes) const {
    auto range = used_.upper_bound(offset);
    if (range == used_.begin()) {
        return false;
    }
    --range;
    if (offset - range->first >= range->second.bytes) {
        return false;
    }
    *begin = range->first;
    *bytes = range->second.bytes;
    return true;
}

Arena::Arena(int device)
    : device_(device), control_(0, CONTROL_BYTES, CONTROL_ALIGNMENT),
      memory_(CONTROL_BYTES, CONTROL_BYTES + device_memory_bytes(), MEMORY_ALIGNMENT),
      reserved_(reservations_begin(), reservations_begin() + RESERVABLE_TIMES * device_memory_bytes(),
                RESERVATION_ALIGNMENT) {
    view_.bytes = reservations_begin() + RESERVABLE_TIMES * device_memory_bytes();
    rlimit largest{};
    if (getrlimit(RLIMIT_FSIZE, &largest) == 0 && largest.rlim_cur != RLIM_INFINITY && largest.rlim_cur < view_.bytes) {
        fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
             "device %d: files of this process may have %llu MB (RLIMIT_FSIZE, ulimit -f), the sparse file of device "
             "memory needs %llu MB; ASCEND_MOCK_HBM_MB makes it smaller",
             device, static_cast<unsigned long long>(largest.rlim_cur >> 20),
             static_cast<unsigned long long>(view_.bytes >> 20));
    }
    Descriptor file(memfd_create("ascend-mock-memory", MFD_CLOEXEC));
    if (!file || ftruncate(file.get(), static_cast<off_t>(view_.bytes)) != 0) {
        fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "device %d: no memory file (%s)", device, std::strerror(errno));
    }
    void *base = map_aligned(file.get(), view_.bytes);
    if (base == MAP_FAILED) {
        fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
             "device %d: no address space for %llu MB (%s); ASCEND_MOCK_HBM_MB makes device memory smaller", device,
             static_cast<unsigned long long>(view_.bytes >> 20), std::strerror(errno));
    }
    madvise(base, view_.bytes, MADV_DONTDUMP);
    madvise(static_cast<char *>(base) + CONTROL_BYTES, device_memory_bytes(), MADV_HUGEPAGE);
    if (getrandom(view_.identity, sizeof(view_.identity), 0) != static_cast<ssize_t>(sizeof(view_.identity))) {
        fail(ACL_ERROR_RT_INTERNAL_ERROR, "%s", system_error("getrandom").c_str());
    }
    view_.base = static_cast<char *>(base);
    view_.file = file.release();
}

void *Arena::allocate(uint64_t bytes) {
    Ended ended;
    std::lock_guard<std::mutex> lock(mutex_);
    sweep(&ended);
    uint64_t offset = 0;
    return allocate_seen(bytes, &offset) ? view_.base + offset : nullptr;
}

bool Arena::release(void *address) {
    const uint64_t offset = offset_of(address);
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t bytes = memory_.release(offset);
    if (bytes >= LARGE_BYTES) {
        give_pages_back(offset, bytes);
    }
    return bytes != 0;
}

uint64_t Arena::hold(const void *address, const std::string &why) {
    uint64_t begin = 0;
    uint64_t bytes = 0;
    std::lock_guard<std::mutex> lock(mutex_);
    if (!memory_.find(offset_of(address), &begin, &bytes)) {
        return 0;
    }
    held_.emplace(++holds_, Held{begin, why});
    return holds_;
}

void Arena::let_go(uint64_t number) {
    std::lock_guard<std::mutex> lock(mutex_);
    held_.erase(number);
}

void Arena::let_go_of_all() {
    std::lock_guard<std::mutex> lock(mutex_);
    held_.clear();
}

void Arena::refuse_if_held(const void *address) const {
    const uint64_t offset = offset_of(address);
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto &entry : held_) {
        if (entry.second.begin == offset) {
            fail(ACL_ERROR_RT_INTERNAL_ERROR, "EI9999: %p is freed, but %s", address, entry.second.why.c_str());
        }
    }
}

void Arena::give_pages_back(uint64_t offset, uint64_t bytes) {
    const uint64_t first = round_up(offset, PAGE_BYTES);
    const uint64_t last = (offset + bytes) / PAGE_BYTES * PAGE_BYTES;
    if (first < last) {
        fallocate(view_.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
                  static_cast<off_t>(last - first));
    }
}

bool Arena::take_unseen(uint64_t bytes) {
    Ended ended;
    std::lock_guard<std::mutex> lock(mutex_);
    sweep(&ended);
    if (bytes > memory_.free_bytes() - unseen_) {
        return false;
    }
    unseen_ += bytes;
    return true;
}

void Arena::give_unseen(uint64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    unseen_ -= bytes;
}

bool Arena::holds(const void *address) const {
    const auto *byte = static_cast<const char *>(address);
    return byte >= view_.base && byte < view_.base + view_.bytes;
}

bool Arena::find(const void *address, Region *region) const {
    const uint64_t offset = offset_of(address);
    uint64_t begin = 0;
    uint64_t bytes = 0;
    std::lock_guard<std::mutex> lock(mutex_);
    if (!memory_.find(offset, &begin, &bytes)) {
        uint64_t place = 0;
        if (!find_mapped(offset, &place, &bytes)) {
            return false;
        }
        *region = {device_, place, bytes};
        return true;
    }
    *region = {device_, offset, begin + bytes - offset};
    return true;
}

uint64_t Arena::allocation_at(const void *address) const {
    const uint64_t offset = offset_of(address);
    uint64_t begin = 0;
    uint64_t bytes = 0;
    std::lock_guard<std::mutex> lock(mutex_);
    return memory_.find(offset, &begin, &bytes) && begin == offset ? bytes : 0;
}

void Arena::memory_info(size_t *free, size_t *total) {
    Ended ended;
    std::lock_guard<std::mutex> lock(mutex_);
    sweep(&ended);
    *free = memory_.free_bytes() - unseen_;
    *total = device_memory_bytes();
}

// Freed small ranges keep their pages, and so do control areas: those count as touched.
uint64_t Arena::untouched() const {
    constexpr uint64_t BLOCK = 512;
    struct stat file {};
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t used = device_memory_bytes() - memory_.free_bytes();
    const uint64_t touched = fstat(view_.file, &file) == 0 ? static_cast<uint64_t>(file.st_blocks) * BLOCK : 0;
    return used > touched ? used - touched : 0;
}

uint64_t Arena::control_allocate(uint64_t bytes) {
    uint64_t offset = 0;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!control_.allocate(bytes, &offset)) {
            fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "device %d: the control area of %llu MB is full", device_,
                 static_cast<unsigned long long>(CONTROL_BYTES >> 20));
        }
    }
    std::memset(view_.base + offset, 0, bytes);
    return offset;
}

void Arena::control_free(uint64_t offset) {
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t bytes = control_.release(offset);
    give_pages_back(offset, bytes);
}

Arena &arena(int device) {
    check_device(device);
    Arenas &all = arenas();
    {
        std::shared_lock<std::shared_mutex> lock(all.mutex);
        const auto found = all.by_device.find(device);
        if (found != all.by_device.end()) {
            return *found->second;
        }
    }
    std::unique_lock<std::shared_mutex> lock(all.mutex);
    Arena *&made = all.by_device[device];
    if (made == nullptr) {
        try {
            made = new Arena(device);
        } catch (...) {
            all.by_device.erase(device);
            throw;
        }
        all.by_base.emplace(made->view().base, made);
    }
    return *made;
}

uint64_t untouched_bytes() {
    Arenas &all = arenas();
    std::shared_lock<std::shared_mutex> lock(all.mutex);
    uint64_t bytes = 0;
    for (const auto &entry : all.by_device) {
        bytes += entry.second->untouched();
    }
    return bytes;
}

Arena *arena_of(const void *address) {
    Arenas &all = arenas();
    std::shared_lock<std::shared_mutex> lock(all.mutex);
    auto next = all.by_base.upper_bound(static_cast<const char *>(address));
    if (next == all.by_base.begin()) {
        return nullptr;
    }
    Arena *candidate = std::prev(next)->second;
    return candidate->holds(address) ? candidate : nullptr;
}

bool find_memory(const void *address, Region *region) {
    const Arena *owner = arena_of(address);
    return (owner != nullptr && owner->find(address, region)) || find_imported(address, region);
}

bool is_device_memory(const void *address) { return arena_of(address) != nullptr || is_imported(address); }

uint64_t hold_memory(const void *address, const std::string &why) {
    Arena *owner = arena_of(address);
    return owner != nullptr ? owner->hold(address, why) : 0;
}

void let_go_of_memory_of(int device) {
    Arenas &all = arenas();
    std::shared_lock<std::shared_mutex> lock(all.mutex);
    const auto found = all.by_device.find(device);
    if (found != all.by_device.end()) {
        found->second->let_go_of_all();
    }
}

void let_go_of_memory(int device, uint64_t number) { arena(device).let_go(number); }

bool arena_view(int device, ArenaView *view, std::string *error) {
    try {
        *view = arena(device).view();
        return true;
    } catch (const std::exception &failure) {
        *error = failure.what();
        return false;
    }
}

bool control_allocate(int device, uint64_t bytes, uint64_t *offset) {
    try {
        *offset = arena(device).control_allocate(bytes);
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

void control_free(int device, uint64_t offset) {
    try {
        arena(device).control_free(offset);
    } catch (const std::exception &) {
        // Only a device that never had an arena can fail here, and then there is nothing to free.
    }
}

bool take_memory(int device, uint64_t bytes) {
    try {
        return arena(device).take_unseen(bytes);
    } catch (const std::exception &) {
        return false;
    }
}

void give_memory(int device, uint64_t bytes) {
    try {
        arena(device).give_unseen(bytes);
    } catch (const std::exception &) {
        // It was taken from an arena, which stays.
    }
}

} // namespace mock
