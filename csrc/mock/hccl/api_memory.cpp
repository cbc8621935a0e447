// Hints by which the vendor's library saves copies and changes network cards: checked and kept, without effect here.

#include <map>

#include "checks.h"

using namespace mock;

namespace {

// Ranges count for all communicators of the process.
struct Ranges {
    std::mutex mutex;
    std::map<const char *, uint64_t> set; // bytes, by where they begin
    std::map<const char *, uint64_t> active;
};

Ranges &ranges() {
    static Ranges &object = *new Ranges;
    return object;
}

void check_family() {
    if (family() != Family::Ascend910B && family() != Family::Ascend910C) {
        fault(HCCL_E_NOT_SUPPORT, "EI0003: memory ranges are not supported by this processor");
    }
}

bool overlaps(const std::map<const char *, uint64_t> &ranges, const char *begin, uint64_t bytes) {
    for (const auto &range : ranges) {
        if (begin < range.first + range.second && range.first < begin + bytes) {
            return true;
        }
    }
    return false;
}

// The range that holds these bytes, or a failure.
void check_in_range(const Ranges &all, const char *begin, uint64_t bytes) {
    for (const auto &entry : all.set) {
        if (begin >= entry.first && begin + bytes <= entry.first + entry.second) {
            return;
        }
    }
    fault(HCCL_E_PARA, "EI0003: %p is not in a range of HcclCommSetMemoryRange", static_cast<const void *>(begin));
}

} // namespace

HcclResult HcclCommSetMemoryRange(HcclComm comm, void *baseVirPtr, size_t size, size_t alignment, uint64_t flags) {
    return guarded("HcclCommSetMemoryRange", [&] {
        find_comm(comm);
        require(static_cast<char *>(baseVirPtr), "baseVirPtr");
        check_family();
        if (size == 0 || alignment != 0 || flags != 0) {
            fault(HCCL_E_PARA, "EI0003: size must not be 0, alignment and flags must be 0");
        }
        const auto *begin = static_cast<const char *>(baseVirPtr);
        Ranges &all = ranges();
        std::lock_guard<std::mutex> lock(all.mutex);
        if (overlaps(all.set, begin, size)) {
            fault(HCCL_E_PARA, "EI0003: the range at %p overlaps one that was set before", baseVirPtr);
        }
        all.set[begin] = size;
    });
}

HcclResult HcclCommUnsetMemoryRange(HcclComm comm, void *baseVirPtr) {
    return guarded("HcclCommUnsetMemoryRange", [&] {
        find_comm(comm);
        require(static_cast<char *>(baseVirPtr), "baseVirPtr");
        Ranges &all = ranges();
        std::lock_guard<std::mutex> lock(all.mutex);
        const auto entry = all.set.find(static_cast<const char *>(baseVirPtr));
        if (entry == all.set.end()) {
            fault(HCCL_E_PARA, "EI0003: no range starts at %p", baseVirPtr);
        }
        if (overlaps(all.active, entry->first, entry->second)) {
            fault(HCCL_E_PARA, "EI0003: memory in the range at %p is active", baseVirPtr);
        }
        all.set.erase(entry);
    });
}

HcclResult HcclCommActivateCommMemory(HcclComm comm, void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                                      uint64_t flags) {
    return guarded("HcclCommActivateCommMemory", [&] {
        find_comm(comm);
        require(static_cast<char *>(virPtr), "virPtr");
        require(static_cast<char *>(handle), "handle");
        if (size == 0 || offset != 0 || flags != 0) {
            fault(HCCL_E_PARA, "EI0003: size must not be 0, offset and flags must be 0");
        }
        const auto *begin = static_cast<const char *>(virPtr);
        Ranges &all = ranges();
        std::lock_guard<std::mutex> lock(all.mutex);
        check_in_range(all, begin, size);
        if (overlaps(all.active, begin, size)) {
            fault(HCCL_E_PARA, "EI0003: memory at %p is active already", virPtr);
        }
        all.active[begin] = size;
    });
}

HcclResult HcclCommDeactivateCommMemory(HcclComm comm, void *virPtr) {
    return guarded("HcclCommDeactivateCommMemory", [&] {
        find_comm(comm);
        require(static_cast<char *>(virPtr), "virPtr");
        Ranges &all = ranges();
        std::lock_guard<std::mutex> lock(all.mutex);
        if (all.active.erase(static_cast<const char *>(virPtr)) == 0) {
            fault(HCCL_E_PARA, "EI0003: no active memory starts at %p", virPtr);
        }
    });
}

// Only superpods (A3) have a second card per device.
HcclResult HcclCommWorkingDevNicSet(HcclComm comm, uint32_t *ranks, bool *useBackup, uint32_t nRanks) {
    return guarded("HcclCommWorkingDevNicSet", [&] {
        const std::shared_ptr<Comm> found = find_comm(comm);
        require(ranks, "ranks");
        require(useBackup, "useBackup");
        if (nRanks == 0 || nRanks > found->size()) {
            fault(HCCL_E_PARA, "EI0003: nRanks is %u: it must be from 1 to %u", nRanks, found->size());
        }
        for (uint32_t i = 0; i < nRanks; i++) {
            check_rank(*found, ranks[i], "rank");
        }
        if (family() != Family::Ascend910C) {
            fault(HCCL_E_NOT_SUPPORT, "EI0003: this processor has no backup card");
        }
    });
}
