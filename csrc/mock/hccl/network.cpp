#include "network.h"

#include <algorithm>
#include <set>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include "calls.h"
#include "proof.h"

namespace mock {
namespace {

enum class Mode { Auto, Shm, Tcp };

Mode mode() {
    const char *text = environment("HCCL_MOCK_NET");
    const std::string value = text != nullptr ? text : "auto";
    if (value != "auto" && value != "shm" && value != "tcp") {
        fault(HCCL_E_PARA, "EI0001: environment variable HCCL_MOCK_NET [%s] is not auto, shm or tcp", text);
    }
    return value == "shm" ? Mode::Shm : value == "tcp" ? Mode::Tcp : Mode::Auto;
}

uint32_t base_port() {
    const char *text = environment("HCCL_IF_BASE_PORT");
    long long port = 60000;
    if (text != nullptr && !parse_number(text, 1024, 65520, &port)) {
        fault(HCCL_E_PARA, "EI0001: environment variable HCCL_IF_BASE_PORT [%s] is not a number from 1024 to 65520",
              text);
    }
    return static_cast<uint32_t>(port);
}

// Addresses of the interfaces of this network namespace.
std::set<std::string> local_addresses() {
    std::set<std::string> addresses;
    ifaddrs *list = nullptr;
    if (getifaddrs(&list) != 0) {
        fault(HCCL_E_SYSCALL, "EI9999: %s", system_error("getifaddrs").c_str());
    }
    for (const ifaddrs *entry = list; entry != nullptr; entry = entry->ifa_next) {
        char text[INET6_ADDRSTRLEN] = {};
        const sockaddr *address = entry->ifa_addr;
        if (address != nullptr && address->sa_family == AF_INET) {
            inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in *>(address)->sin_addr, text, sizeof(text));
        } else if (address != nullptr && address->sa_family == AF_INET6) {
            inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr, text, sizeof(text));
        }
        if (text[0] != '\0') {
            addresses.insert(text);
        }
    }
    freeifaddrs(list);
    return addresses;
}

} // namespace

std::string Network::address(uint32_t server, int device) const {
    const std::string &host = hosts[server];
    return format(host.find(':') == std::string::npos ? "%s:%u" : "[%s]:%u", host.c_str(), port(device));
}

std::shared_ptr<Network> make_network(const RankTable &table, uint32_t rank, const std::string &job) {
    const Mode chosen = mode();
    if (chosen == Mode::Shm) {
        return nullptr;
    }
    const std::set<std::string> here = local_addresses();
    const auto is_here = [&](const std::string &host) { return here.count(host) != 0; };
    const bool simulated = std::none_of(table.addresses.begin(), table.addresses.end(), is_here);
    if (simulated && chosen == Mode::Auto) {
        return nullptr;
    }
    auto network = std::make_shared<Network>();
    const uint32_t own = table.ranks[rank].server;
    for (size_t server = 0; server < table.addresses.size(); server++) {
        const std::string &host = table.addresses[server];
        network->hosts.push_back(simulated ? format("127.0.%zu.%zu", (server + 1) / 256, (server + 1) % 256) : host);
        network->by_tcp.push_back(chosen == Mode::Tcp || (server != own && !is_here(host)));
    }
    if (std::none_of(network->by_tcp.begin(), network->by_tcp.end(), [](bool tcp) { return tcp; })) {
        return nullptr;
    }
    for (size_t server = 0; server < network->hosts.size(); server++) {
        if (network->hosts[server].empty()) {
            fault(HCCL_E_PARA, "EI0004: The ranktable is invalid: server_list[%zu] [%s] is reached by TCP, but has no "
                               "address: host_ip, or server_id, must be one", server, table.server_ids[server].c_str());
        }
    }
    network->base_port = base_port();
    const Sum key = keyed_hash("ascend-mock job", job + "\n" + table.content);
    network->key.assign(key.begin(), key.end());
    network->listener = listen_at(network->hosts[own], network->port(table.ranks[rank].device), network);
    return network;
}

} // namespace mock
