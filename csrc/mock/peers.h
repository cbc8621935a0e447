// Processes that share this machine, and their device memory as it is mapped here. Both libraries use it, so that a process
// maps the memory of another one once.

#ifndef ASCEND_MOCK_PEERS_H
#define ASCEND_MOCK_PEERS_H

#include <memory>
#include <string>

#include <sys/types.h>

#include "runtime.h"

namespace mock {

// The device memory of another process. Mapped once per process and device, whoever uses it.
class ASCEND_MOCK_SHARED PeerArena {
public:
    PeerArena(char *base, uint64_t bytes, pid_t pid);
    ~PeerArena();
    PeerArena(const PeerArena &) = delete;
    PeerArena &operator=(const PeerArena &) = delete;

    char *base() const { return base_; }
    uint64_t bytes() const { return bytes_; }
    pid_t pid() const { return pid_; }
    // False once the process has ended.
    bool alive() const;

private:
    char *base_;
    uint64_t bytes_;
    pid_t pid_;
    Descriptor process_; // readable when the process has ended
};

// The mapping of the arena with that identity, made from `file` if this process does not have it yet. Without room for it,
// or if the file is too short, there is a text instead.
ASCEND_MOCK_SHARED std::shared_ptr<PeerArena> map_arena(const std::string &identity, const Descriptor &file,
                                                        uint64_t bytes, pid_t pid, std::string *error);

} // namespace mock

#endif
