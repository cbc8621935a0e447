#include "table.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include <arpa/inet.h>
#include <climits>
#include <sys/stat.h>

#include "json.h"

namespace mock {
namespace {

constexpr size_t LONGEST_PATH = 4096;
constexpr size_t LARGEST_FILE = 64 << 20;
constexpr size_t LONGEST_SERVER_ID = 64;

// A field by its place, for messages: "server_list[1].device[0].rank_id".
using Place = std::string;

const Json &member(const Json &object, const char *name, const Place &place) {
    const Json *found = object.kind == Json::Kind::Object ? object.find(name) : nullptr;
    if (found == nullptr) {
        fault(HCCL_E_NOT_FOUND, "EI0004: The ranktable is invalid: %s%s is missing", place.c_str(), name);
    }
    return *found;
}

const std::string &text_of(const Json &value, const char *name, const Place &place) {
    if (value.kind != Json::Kind::String) {
        fault(HCCL_E_PARA, "EI0004: The ranktable is invalid: %s%s is not string!", place.c_str(), name);
    }
    return value.text;
}

const std::string &text_member(const Json &object, const char *name, const Place &place) {
    return text_of(member(object, name, place), name, place);
}

const std::vector<Json> &list_member(const Json &object, const char *name, const Place &place) {
    const Json &list = member(object, name, place);
    if (list.kind != Json::Kind::Array || list.items.empty()) {
        fault(HCCL_E_PARA, "EI0004: The ranktable is invalid: %s%s is not a list with entries", place.c_str(), name);
    }
    return list.items;
}

uint32_t number_member(const Json &object, const char *name, const Place &place, uint32_t most, const char *code) {
    const std::string &text = text_member(object, name, place);
    long long value = 0;
    const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || !parse_number(text.c_str(), 0, most, &value)) {
        fault(HCCL_E_PARA, "%s: The ranktable is invalid: %s%s [%s] is not a number from 0 to %u", code, place.c_str(),
              name, text.c_str(), most);
    }
    return static_cast<uint32_t>(value);
}

std::string read_file(const char *path) {
    char real[PATH_MAX];
    if (path[0] == '\0' || std::strlen(path) >= LONGEST_PATH || realpath(path, real) == nullptr) {
        throw LoadFault(HCCL_E_PARA, format("EI0004: The ranktable path [%.200s] is not a valid real path", path));
    }
    struct stat status {};
    if (stat(real, &status) != 0 || !S_ISREG(status.st_mode) ||
        static_cast<uint64_t>(status.st_size) > LARGEST_FILE) {
        throw LoadFault(HCCL_E_PARA, format("EI0004: The ranktable [%s] is not a file of at most 64 MB", real));
    }
    std::ifstream file(real, std::ios::binary);
    std::stringstream content;
    content << file.rdbuf();
    if (!file) {
        throw LoadFault(HCCL_E_OPEN_FILE_FAILURE, format("EI0004: The ranktable [%s] cannot be read", real));
    }
    return content.str();
}

Json parse(const std::string &content, const char *path) {
    Json root;
    std::string error;
    if (!parse_json(content, &root, &error) || root.kind != Json::Kind::Object) {
        throw LoadFault(HCCL_E_INTERNAL, format("EI0004: Invalid ranktable format. %s: %s", path,
                                                error.empty() ? "it is not an object" : error.c_str()));
    }
    return root;
}

// Seconds that a table may stay unfinished. The vendor's library waits for half an hour.
long long patience() {
    long long seconds = 1800;
    const char *text = environment("HCCL_MOCK_TABLE_TIMEOUT");
    if (text != nullptr && !parse_number(text, 0, 86400, &seconds)) {
        fault(HCCL_E_PARA, "EI0001: environment variable HCCL_MOCK_TABLE_TIMEOUT [%s] is not a number from 0 to 86400",
              text);
    }
    return seconds;
}

// The table once its status is "completed".
Json read_completed(const char *path, std::string *content) {
    const auto limit = Clock::now() + std::chrono::seconds(patience());
    for (;;) {
        *content = read_file(path);
        Json root = parse(*content, path);
        const std::string &status = text_member(root, "status", "");
        if (status == "completed") {
            return root;
        }
        if (Clock::now() >= limit) {
            throw LoadFault(HCCL_E_TIMEOUT, format("EI0004: The ranktable [%s] has status [%s]; it did not become "
                                                   "completed in time", path, status.c_str()));
        }
        std::this_thread::sleep_for(std::chrono::seconds(1));
    }
}

int family_of_ip(const std::string &ip) {
    in6_addr address;
    if (inet_pton(AF_INET, ip.c_str(), &address) == 1) {
        return AF_INET;
    }
    return inet_pton(AF_INET6, ip.c_str(), &address) == 1 ? AF_INET6 : 0;
}

// Collects the table's entries and checks what has to hold between them.
class Checker {
public:
    Checker(const Json &root, RankTable *table) : root_(root), table_(table) {}

    void run(uint32_t rank) {
        check_version();
        const std::vector<Json> &servers = list_member(root_, "server_list", "");
        check_server_count(servers.size());
        several_ = servers.size() > 1;
        for (size_t i = 0; i < servers.size(); i++) {
            read_server(servers[i], static_cast<uint32_t>(i));
        }
        check_ranks(rank);
        check_blocks();
        if (family() == Family::Ascend910A) {
            check_910a();
        }
    }

private:
    void check_version() {
        const Json *version = root_.find("version");
        if (version == nullptr) {
            fault(HCCL_E_NOT_SUPPORT, "EI0014: version[] is not supported: the ranktable has no version, as tables of "
                                      "the oldest form (group_list); this library reads version 1.0");
        }
        const std::string &text = text_of(*version, "version", "");
        if (text != "1.0") {
            fault(HCCL_E_NOT_SUPPORT, "EI0014: version[%s] is not supported; this library reads version 1.0",
                  text.c_str());
        }
    }

    void check_server_count(size_t servers) {
        if (root_.find("server_count") == nullptr) {
            warn_once("the ranktable has no server_count");
            return;
        }
        const uint32_t count = number_member(root_, "server_count", "", UINT32_MAX, "EI0014");
        if (count != servers || count == 0) {
            fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: server_count is %u, server_list has %zu entries",
                  count, servers);
        }
    }

    void read_server(const Json &server, uint32_t index) {
        const Place place = format("server_list[%u].", index);
        const std::string &id = text_member(server, "server_id", place);
        if (id.empty() || id.size() > LONGEST_SERVER_ID) {
            fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: %sserver_id [%.80s] must have 1 to %zu characters",
                  place.c_str(), id.c_str(), LONGEST_SERVER_ID);
        }
        const auto known = std::find(table_->server_ids.begin(), table_->server_ids.end(), id);
        if (known != table_->server_ids.end()) {
            fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: %sserver_id [%s] is already exist (server_list[%zu])",
                  place.c_str(), id.c_str(), static_cast<size_t>(known - table_->server_ids.begin()));
        }
        table_->server_ids.push_back(id);
        table_->addresses.push_back(address_of(server, id));
        const std::vector<Json> &devices = list_member(server, "device", place);
        std::set<int> ids;
        for (size_t i = 0; i < devices.size(); i++) {
            read_device(devices[i], index, place + format("device[%zu].", i), &ids);
        }
    }

    static std::string address_of(const Json &server, const std::string &id) {
        const Json *host = server.find("host_ip");
        if (host != nullptr && host->kind == Json::Kind::String && family_of_ip(host->text) != 0) {
            return host->text;
        }
        return family_of_ip(id) != 0 ? id : "";
    }

    void read_device(const Json &device, uint32_t server, const Place &place, std::set<int> *ids) {
        TableRank entry;
        entry.server = server;
        const uint32_t most =
            family() == Family::Ascend910A ? 7 : std::max<uint32_t>(15, device_count() - 1); // physical ids
        entry.device = static_cast<int>(number_member(device, "device_id", place, most, "EI0004"));
        if (!ids->insert(entry.device).second) {
            fault(HCCL_E_PARA, "EI0014: device id repeat for one server: %sdevice_id is %d", place.c_str(),
                  entry.device);
        }
        read_ip(device, place, &entry);
        if (device.find("device_port") != nullptr &&
            number_member(device, "device_port", place, 65535, "EI0004") == 0) {
            fault(HCCL_E_PARA, "EI0004: The ranktable is invalid: %sdevice_port is 0", place.c_str());
        }
        entry.rank = number_member(device, "rank_id", place, UINT32_MAX - 1, "EI0014");
        table_->ranks.push_back(entry);
    }

    void read_ip(const Json &device, const Place &place, TableRank *entry) {
        const bool due = several_ || family() == Family::Ascend910A;
        if (!due && device.find("device_ip") == nullptr) {
            return;
        }
        entry->device_ip = text_member(device, "device_ip", place);
        if (!due && entry->device_ip.empty()) {
            return;
        }
        std::stringstream list(entry->device_ip);
        std::string ip;
        size_t count = 0;
        while (std::getline(list, ip, ',')) {
            const int kind = family_of_ip(ip);
            if (kind == 0) {
                break;
            }
            if (ip_family_ != 0 && kind != ip_family_) {
                fault(HCCL_E_PARA, "EI0001: The ranktable is invalid: device ip family of %sdevice_ip [%s] is not that "
                                   "of the others", place.c_str(), ip.c_str());
            }
            ip_family_ = kind;
            if (!ips_.insert(ip).second) {
                fault(HCCL_E_PARA, "EI0014: The IP is used repeatedly. %sdevice_ip [%s]", place.c_str(), ip.c_str());
            }
            ip.clear();
            count++;
        }
        if (count == 0 || !ip.empty()) {
            fault(HCCL_E_PARA, "EI0004: The ranktable is invalid: %sdevice_ip [%s] is not an IP address", place.c_str(),
                  entry->device_ip.c_str());
        }
    }

    void check_ranks(uint32_t rank) {
        std::vector<TableRank> &ranks = table_->ranks;
        if (rank >= ranks.size()) {
            fault(HCCL_E_PARA, "EI0004: rank %u is not in the ranktable, which has %zu ranks", rank, ranks.size());
        }
        std::stable_sort(ranks.begin(), ranks.end(),
                         [](const TableRank &a, const TableRank &b) { return a.rank < b.rank; });
        if (ranks[rank].rank != rank) {
            fault(HCCL_E_UNAVAIL, "EI0014: The ranktable is invalid: rank %u is not at its place: rank_id %u is there, "
                                  "so a rank_id is missing or there twice", rank, ranks[rank].rank);
        }
        for (size_t i = 0; i < ranks.size(); i++) {
            if (ranks[i].rank != i) {
                fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: rank_id %u is less than the communication size "
                                   "%zu and must be unique.", ranks[i].rank, ranks.size());
            }
        }
    }

    // The ranks of a server follow each other.
    void check_blocks() const {
        std::set<uint32_t> seen;
        uint32_t last = NO_SERVER;
        for (const TableRank &rank : table_->ranks) {
            if (rank.server != last && !seen.insert(rank.server).second) {
                fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: the ranks of server_list[%u] are not one block: "
                                   "rank %u is apart from the others", rank.server, rank.rank);
            }
            last = rank.server;
        }
    }

    void check_910a() const {
        std::vector<std::vector<int>> devices(table_->server_ids.size());
        for (const TableRank &rank : table_->ranks) {
            devices[rank.server].push_back(rank.device);
        }
        for (size_t i = 0; i < devices.size(); i++) {
            const size_t count = devices[i].size();
            if (count != devices[0].size() || (count != 1 && count != 2 && count != 4 && count != 8 && count != 16)) {
                fault(HCCL_E_PARA, "EI0004: The ranktable is invalid: server_list[%zu] has %zu devices: every server "
                                   "needs the same number out of 1, 2, 4, 8, 16", i, count);
            }
            const bool low = std::any_of(devices[i].begin(), devices[i].end(), [](int id) { return id < 4; });
            const bool high = std::any_of(devices[i].begin(), devices[i].end(), [](int id) { return id >= 4; });
            if ((count == 2 || count == 4) && low && high) {
                fault(HCCL_E_PARA, "EI0004: The ranktable is invalid: the %zu devices of server_list[%zu] lie on both "
                                   "sides of 0-3 and 4-7", count, i);
            }
        }
    }

    static constexpr uint32_t NO_SERVER = 0xffffffff;
    const Json &root_;
    RankTable *table_;
    bool several_ = false;
    int ip_family_ = 0;
    std::set<std::string> ips_;
};

} // namespace

RankTable load_table(const char *path, uint32_t rank) {
    require(path, "clusterInfo");
    RankTable table;
    const Json root = read_completed(path, &table.content);
    Checker(root, &table).run(rank);
    return table;
}

} // namespace mock
