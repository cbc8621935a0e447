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
    std::vector<uint16_t> ports;    // of each server, if each is a rank with a port of its own choice; else empty
    uint32_t base_port = 0;
    std::shared_ptr<Listener> listener; // this rank's

    std::string address(uint32_t server, int device) const; // "10.0.0.1:60003", for messages
    uint16_t port(uint32_t server, int device) const {
        return ports.empty() ? static_cast<uint16_t>(base_port + static_cast<uint32_t>(device)) : ports[server];
    }
};

// What HCCL_MOCK_NET and the table say for this rank; nullptr if all peers are reached by shared memory. Listens.
std::shared_ptr<Network> make_network(const RankTable &table, uint32_t rank, const std::string &job);

// Where a process listens for the ranks of a world made from root info, which knows no servers.
struct Endpoint {
    bool forced = false;              // HCCL_MOCK_NET is tcp
    std::string interface;            // "eth0"
    std::string host;                 // empty: TCP is not possible or not wanted here
    std::shared_ptr<Network> network; // listens; holds nothing but the key
};
// By HCCL_IF_IP, else HCCL_SOCKET_IFNAME, else the first interface that is neither loopback nor a container's.
Endpoint make_endpoint(const std::string &key);
// The same for all processes that reach each other by shared memory, and for no others.
std::string machine_identity();

} // namespace mock

#endif
