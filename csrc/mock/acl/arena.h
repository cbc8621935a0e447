// Device memory: one memory file per device and process, which other ranks map.
//
// The file starts with a control area, where communicators keep what ranks tell each other; device memory follows, and
// then the addresses that a client may reserve and put physical memory behind. These lie in the file too, so that other
// ranks reach memory there as they reach any other: physical memory that is mapped has its content there, and in a place
// of its own in device memory while it is not. Memory that is shared by a handle stays in that place: the addresses it is
// mapped to show those pages of the file, or of the file of the process that has it.
// It is sparse: only pages that were touched cost anything, and it vanishes with the last process that maps it.

#ifndef ASCEND_MOCK_ACL_ARENA_H
#define ASCEND_MOCK_ACL_ARENA_H

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "failure.h"

namespace mock {

class ImportedRange;
class SharedRange;

// Hands out ranges of [begin, end), always the lowest that fits, so that memory in use stays together.
class FirstFit {
public:
    FirstFit(uint64_t begin, uint64_t end, uint64_t alignment);
    // At a multiple of `alignment`, or of the usual one if that is larger.
    bool allocate(uint64_t bytes, uint64_t *offset, uint64_t alignment = 0);
    // Length of the range that was given back; 0 if none starts there.
    uint64_t release(uint64_t offset);
    // The range in use that holds `offset`; false if it is free.
    bool find(uint64_t offset, uint64_t *begin, uint64_t *bytes) const;
    uint64_t free_bytes() const { return free_bytes_; }

private:
    uint64_t alignment_;
    uint64_t free_bytes_;
    struct Used {
        uint64_t bytes;    // asked for
        uint64_t reserved; // rounded up to the alignment
    };
    std::map<uint64_t, uint64_t> free_; // begin -> length
    std::map<uint64_t, Used> used_;     // begin -> lengths
};

// The pages that an allocation of that size lies in; those of less than a page share one.
uint64_t page_bytes(uint64_t bytes);

// Memory that has no address of its own.
struct Physical {
    int device = -1;
    uint64_t bytes = 0;
    uint64_t home = 0;    // where in device memory it is accounted for, and its content while it is not mapped
    bool written = false; // it was mapped before: there is content at home
    bool mapped = false;
    uint64_t handles = 1; // its memory ends with the last of them and its mapping
    // At most one of the two: what this process shares by a handle, and what it has imported by one.
    std::shared_ptr<SharedRange> shared;
    std::shared_ptr<ImportedRange> imported;
};

class Arena {
public:
    explicit Arena(int device);
    void *allocate(uint64_t bytes);
    bool release(void *address); // false if no allocation starts there
    // Keeps the allocation that holds the address from being freed, as hold_memory says; 0 if none does.
    uint64_t hold(const void *address, const std::string &why);
    void let_go(uint64_t number);
    void let_go_of_all();
    void refuse_if_held(const void *address) const;
    bool find(const void *address, Region *region) const;
    // Bytes of the allocation that starts there; 0 if none does.
    uint64_t allocation_at(const void *address) const;
    void memory_info(size_t *free, size_t *total);
    uint64_t untouched() const; // bytes of allocations that the host has given no pages for
    uint64_t control_allocate(uint64_t bytes);
    void control_free(uint64_t offset);
    const ArenaView &view() const { return view_; }
    bool holds(const void *address) const;

    // Addresses without memory, in whole large pages; nullptr if there are not so many.
    void *reserve(uint64_t bytes);
    void unreserve(void *address);
    bool in_reservation(const void *address, uint64_t bytes) const;
    std::shared_ptr<Physical> allocate_physical(uint64_t bytes); // nullptr if memory is exhausted
    // One more handle of it; false if the last was freed.
    bool hold_physical(Physical &memory);
    // Whether that was the last handle.
    bool free_physical(const std::shared_ptr<Physical> &memory);
    // Shares it with processes that are named later, or with anyone who has the key, which is returned. Once only.
    std::string share_physical(Physical &memory, bool anyone);
    // What this process shares of it; nullptr if that is nothing.
    std::shared_ptr<SharedRange> shared(const Physical &memory) const;
    // Memory that is only accounted for: nobody has its address. False if there is not so much.
    bool take_unseen(uint64_t bytes);
    void give_unseen(uint64_t bytes);
    void map(void *address, std::shared_ptr<Physical> memory);
    void unmap(void *address);

private:
    void give_pages_back(uint64_t offset, uint64_t bytes);
    // Device memory besides what was taken unseen; needs the lock.
    bool allocate_seen(uint64_t bytes, uint64_t *offset) {
        // Pages belong to one allocation each where there is room, as only whole ones can be shared with other processes.
        return bytes <= memory_.free_bytes() - unseen_ &&
               (memory_.allocate(bytes, offset, page_bytes(bytes)) || memory_.allocate(bytes, offset));
    }
    // Where the content of a mapped address is, and how far it goes on.
    bool find_mapped(uint64_t offset, uint64_t *place, uint64_t *bytes) const;
    // Shows pages of a file at addresses of this arena.
    void show(uint64_t offset, uint64_t bytes, int file, uint64_t place);
    // Gives back what is neither mapped nor held any more; `sweep` does that for what other processes have freed meanwhile.
    // A record of sharing ends when the lock is given back.
    using Ended = std::vector<std::shared_ptr<SharedRange>>;
    void end_physical(const std::shared_ptr<Physical> &memory, Ended *ended);
    void sweep(Ended *ended);
    uint64_t offset_of(const void *address) const {
        return static_cast<uint64_t>(static_cast<const char *>(address) - view_.base);
    }

    int device_;
    ArenaView view_;
    mutable std::mutex mutex_;
    FirstFit control_;
    FirstFit memory_;
    uint64_t unseen_ = 0;
    struct Held {
        uint64_t begin; // of the allocation
        std::string why;
    };
    uint64_t holds_ = 0; // so far
    std::map<uint64_t, Held> held_;
    FirstFit reserved_;
    std::map<uint64_t, std::shared_ptr<Physical>> mapped_; // by offset
    // Freed here, while other processes still have them.
    std::vector<std::shared_ptr<Physical>> left_;
};

// The arena of a device, made at the first use.
Arena &arena(int device);
// Bytes on all devices of this process that are allocated, but cost the host nothing yet.
uint64_t untouched_bytes();
// The arena that an address lies in; nullptr for host memory and for memory that was imported by a key.
Arena *arena_of(const void *address);
// Whether it is an address of device memory, this process's or imported, be it in use or not.
bool is_device_memory(const void *address);
// Of the device's memory nothing is held any more: all tasks have ended, also those that streams do not know.
void let_go_of_memory_of(int device);

} // namespace mock

#endif
