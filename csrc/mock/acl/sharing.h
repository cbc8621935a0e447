// Memory that a process shares with others of its machine: what the owner keeps of it, and what an importer has.
//
// The owner keeps a record of it in the control area of its memory file: what is shared, who may import it, who has. A key
// of 64 characters says where the record is: process, descriptor of the file, place. An importer opens the file through
// /proc, which the kernel allows to processes of the same user, finds the same key there, and maps the file. The record
// tells it later whether the owner still shares the memory.

#ifndef ASCEND_MOCK_ACL_SHARING_H
#define ASCEND_MOCK_ACL_SHARING_H

#include <memory>
#include <string>

#include "failure.h"
#include "peers.h"

namespace mock {

constexpr size_t SHARING_KEY_CHARACTERS = 64;

// The driver's answer to most that is wrong reaches the program as its internal error.
constexpr aclError DRIVER_ERROR = ACL_ERROR_RT_DRV_INTERNAL_ERROR;

// Left: its owner has freed it, and those that have it keep it.
enum class Sharing : uint32_t { Ended, Live, Freed, Left };

struct SharingRecord;

// The owner's side.
class SharedRange {
public:
    // `bytes` bytes from `offset` on of the device's memory file; with `anyone`, no list of processes is asked for.
    SharedRange(int device, uint64_t offset, uint64_t bytes, bool anyone);
    // Gives the record back: no importer may have the memory any more.
    ~SharedRange();
    SharedRange(const SharedRange &) = delete;
    SharedRange &operator=(const SharedRange &) = delete;

    const std::string &key() const { return key_; }
    bool live() const;
    bool anyone() const;
    // Other processes that may import it. Fails with DRIVER_ERROR if there are none or too many.
    void allow(const int32_t *pids, size_t count);
    // Other processes that have it.
    size_t importers() const;
    void end(Sharing how);

private:
    int device_;
    uint64_t place_; // of the record, in the control area
    SharingRecord *record_;
    std::string key_;
};

// The importer's side: the owner's memory file, mapped, and the part of it that is shared.
class ImportedRange {
public:
    // Why there is none, as the end of a sentence.
    struct Refusal {
        bool forbidden; // it is there, but not for this process
        std::string why;
    };
    // nullptr and a refusal if the key leads to nothing that this process may have.
    static std::shared_ptr<ImportedRange> open(const std::string &key, Refusal *refusal);

    // Whether the owner has not taken it away. If its process has ended without that, the content stays.
    bool live() const;
    // This process has it, and has it no more: the owner can count those that do.
    void enter();
    void leave();
    const std::string &key() const { return key_; }
    pid_t owner() const { return owner_; }
    bool owner_runs() const { return arena_->alive(); }
    int physical_device() const { return physical_device_; } // whose memory it is
    uint64_t offset() const { return offset_; }              // in the owner's file
    uint64_t bytes() const { return bytes_; }
    int file() const { return file_.get(); }
    char *address() const { return arena_->base() + offset_; }
    const std::shared_ptr<PeerArena> &arena() const { return arena_; }

private:
    // Whether the record is still that of the key: the owner keeps it as long as others have the memory.
    bool known() const;

    std::shared_ptr<PeerArena> arena_;
    Descriptor file_;
    SharingRecord *record_ = nullptr;
    std::string key_;
    uint64_t random_ = 0;
    pid_t owner_ = -1;
    int physical_device_ = -1;
    uint64_t offset_ = 0;
    uint64_t bytes_ = 0;
};

// Where imported memory lies in this process.
struct ImportedPlace {
    std::shared_ptr<ImportedRange> range;
    bool across = false; // on another device than the one that it was imported for
};

void add_imported(const void *address, ImportedPlace place);
void remove_imported(const void *address, const ImportedRange *range);

// Whether an import of this process holds the address.
bool is_imported(const void *address);
// The same, with the place in the owner's memory. False, too, if the owner has closed or freed it.
bool find_imported(const void *address, Region *region);
// Whether it is on another device than the one that it was imported for.
bool is_across_devices(const void *address);

} // namespace mock

#endif
