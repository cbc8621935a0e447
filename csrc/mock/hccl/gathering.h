// What the root of a world made from root info and its ranks tell each other.

#ifndef ASCEND_MOCK_HCCL_GATHERING_H
#define ASCEND_MOCK_HCCL_GATHERING_H

#include <vector>

#include "network.h"

namespace mock {

constexpr uint32_t ROOT_INFO_MAGIC = 0x48525449;
constexpr uint32_t MOST_RANKS = 4096;

// A rank, as it introduces itself to the root and as the root introduces it to the others.
struct Introduction {
    int32_t device;  // its number on the server
    uint16_t port;   // where it listens; 0: nowhere
    uint16_t forced; // 1: it reaches everybody by TCP
    char host[48];
    char machine[40];
    char server[40]; // where launchers simulate several servers on one machine: SERVER_ID
};

struct Join {
    uint32_t magic;
    uint32_t size;
    uint32_t rank;
    int32_t pid;
    char name[128]; // of the communicator, from the configuration
    Introduction introduction;
};

struct Answer {
    uint32_t code; // HcclResult
    uint32_t count;
    char reason[1024];
    // `count` introductions follow, in the order of the ranks
};

// Starts the root's thread, which ends when all ranks were answered. Those on this machine call `listener`; others, after
// their proof, the name at the network's listener, if there is one.
void start_gathering(Descriptor listener, const std::string &name, const std::shared_ptr<Network> &network,
                     std::chrono::seconds patience);

} // namespace mock

#endif
