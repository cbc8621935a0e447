// Which peers are reached by TCP, and where they listen.

#ifndef ASCEND_MOCK_HCCL_NETWORK_H
#define ASCEND_MOCK_HCCL_NETWORK_H

#include <memory>
#include <string>
#include <vector>

#include "table.h"

namespace mock {

class Listener;

struct Network {
    std::string key;                // proves that a caller belongs to the job
    std::vector<std::string> hosts; // address of each server
    std::vector<bool> by_tcp;       // per server: its ranks are reached by TCP
    uint32_t base_port = 0;
    std::shared_ptr<Listener> listener; // this rank's

    std::string address(uint32_t server, int device) const; // "10.0.0.1:60003", for messages
    uint16_t port(int device) const { return static_cast<uint16_t>(base_port + static_cast<uint32_t>(device)); }
};

// What HCCL_MOCK_NET and the table say for this rank; nullptr if all peers are reached by shared memory. Listens.
std::shared_ptr<Network> make_network(const RankTable &table, uint32_t rank, const std::string &job);

} // namespace mock

#endif
