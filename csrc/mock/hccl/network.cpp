#include "network.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include "calls.h"
#include "proof.h"
#include "secret.h"

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

struct Interface {
    std::string name;
    std::string address;
    bool six;
};

// Addresses of the interfaces of this network namespace, but for those that only mean something on one cable.
std::vector<Interface> interfaces() {
    std::vector<Interface> found;
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
            const in6_addr &six = reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr;
            if (!IN6_IS_ADDR_LINKLOCAL(&six)) {
                inet_ntop(AF_INET6, &six, text, sizeof(text));
            }
        }
        if (text[0] != '\0') {
            found.push_back({entry->ifa_name, text, address->sa_family == AF_INET6});
        }
    }
    freeifaddrs(list);
    return found;
}

std::set<std::string> local_addresses() {
    std::set<std::string> addresses;
    for (const Interface &interface : interfaces()) {
        addresses.insert(interface.address);
    }
    return addresses;
}

bool starts_with(const std::string &text, const std::string &start) {
    return text.compare(0, start.size(), start) == 0;
}

// HCCL_SOCKET_IFNAME: names or their beginnings, separated by commas; "=" before the list asks for whole names, "^" for all
// interfaces but these.
bool is_wanted(const std::string &name) {
    const char *variable = environment("HCCL_SOCKET_IFNAME");
    if (variable == nullptr) {
        return !starts_with(name, "lo") && !starts_with(name, "docker");
    }
    std::string list = variable;
    const bool excluded = list[0] == '^';
    list.erase(0, excluded ? 1 : 0);
    const bool whole = !list.empty() && list[0] == '=';
    list.erase(0, whole ? 1 : 0);
    std::stringstream names(list);
    for (std::string one; std::getline(names, one, ',');) {
        if (!one.empty() && (whole ? name == one : starts_with(name, one))) {
            return !excluded;
        }
    }
    return excluded;
}

// HCCL_SOCKET_FAMILY; IPv4 goes first where nothing is said.
bool has_family(bool six) {
    const char *family = environment("HCCL_SOCKET_FAMILY");
    if (family == nullptr) {
        return true;
    }
    const std::string value = family;
    if (value != "AF_INET" && value != "AF_INET6") {
        fault(HCCL_E_PARA, "EI0001: environment variable HCCL_SOCKET_FAMILY [%s] is not AF_INET or AF_INET6", family);
    }
    return six == (value == "AF_INET6");
}

Interface choose_interface(bool forced) {
    const char *wanted = environment("HCCL_IF_IP");
    const std::vector<Interface> all = interfaces();
    for (const bool six : {false, true}) {
        for (const Interface &one : all) {
            if (wanted != nullptr ? one.address == wanted : one.six == six && has_family(six) && is_wanted(one.name)) {
                return one;
            }
        }
    }
    if (wanted != nullptr && starts_with(wanted, "127.")) {
        return {"lo", wanted, false}; // all of them are the machine's, though only one is listed
    }
    if (wanted != nullptr || environment("HCCL_SOCKET_IFNAME") != nullptr) {
        fault(HCCL_E_PARA, "EI0001: no interface here is that of environment variable %s [%s]",
              wanted != nullptr ? "HCCL_IF_IP" : "HCCL_SOCKET_IFNAME",
              wanted != nullptr ? wanted : environment("HCCL_SOCKET_IFNAME"));
    }
    return forced ? Interface{"lo", "127.0.0.1", false} : Interface{};
}

} // namespace

std::string Network::address(uint32_t server, int device) const {
    const std::string &host = hosts[server];
    return format(host.find(':') == std::string::npos ? "%s:%u" : "[%s]:%u", host.c_str(), port(server, device));
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
            fault(HCCL_E_PARA,
                  "EI0004: The ranktable is invalid: server_list[%zu] [%s] is reached by TCP, but has no "
                  "address: host_ip, or server_id, must be one",
                  server, table.server_ids[server].c_str());
        }
    }
    network->base_port = base_port();
    const std::string secret = job_secret();
    if (secret.empty() && !simulated) {
        warn_once("without ADASUM_JOB_SECRET or ADASUM_JOB_SECRET_FILE others can guess the key of connections between "
                  "servers: their network must be a trusted one");
    }
    const Sum key = keyed_hash(secret, "ascend-mock job\n" + job + "\n" + table.content);
    network->key.assign(key.begin(), key.end());
    network->listener = listen_at(network->hosts[own], network->port(own, table.ranks[rank].device), network);
    return network;
}

Endpoint make_endpoint(const std::string &key) {
    Endpoint endpoint;
    const Mode chosen = mode();
    if (chosen == Mode::Shm) {
        return endpoint;
    }
    endpoint.forced = chosen == Mode::Tcp;
    const Interface interface = choose_interface(endpoint.forced);
    if (interface.address.empty()) {
        return endpoint;
    }
    endpoint.network = std::make_shared<Network>();
    endpoint.network->key = key;
    endpoint.network->listener = listen_at(interface.address, 0, endpoint.network);
    endpoint.interface = interface.name;
    endpoint.host = interface.address;
    return endpoint;
}

// Shared memory needs one kernel and, because sockets by which ranks meet have names there, one network namespace.
std::string machine_identity() {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    char space[64] = {};
    if (readlink("/proc/self/ns/net", space, sizeof(space) - 1) < 0) {
        space[0] = '\0';
    }
    return digest(boot + " " + space);
}

} // namespace mock
