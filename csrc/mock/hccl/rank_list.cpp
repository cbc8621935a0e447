// Rank tables of version 2.0, the only ones of the Ascend 950: a list of ranks, each with its place in the layers of the
// network. What of them counts here are ranks, devices and which ranks share an instance of the lowest layer: a server.

#include <algorithm>
#include <set>

#include "table_rules.h"

namespace mock {
namespace {

uint32_t number_in(const Json &object, const char *name, const FieldPlace &place, uint32_t least, uint32_t most) {
    const Json *value = object.find(name);
    long long number = 0;
    if (value == nullptr || value->kind != Json::Kind::Number ||
        !parse_number(value->text.c_str(), least, most, &number)) {
        fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: %s%s is missing or no number from %u to %u",
              place.c_str(), name, least, most);
    }
    return static_cast<uint32_t>(number);
}

const std::vector<Json> &list_in(const Json &object, const char *name, const FieldPlace &place) {
    const Json *list = object.find(name);
    if (list == nullptr || list->kind != Json::Kind::Array) {
        fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: %s%s is missing or no list", place.c_str(), name);
    }
    return list->items;
}

// The instance of the lowest layer.
std::string server_of(const Json &rank, const FieldPlace &place) {
    constexpr size_t LAYERS = 8;
    constexpr size_t LONGEST_NAME = 1024;
    const std::vector<Json> &levels = list_in(rank, "level_list", place);
    if (levels.size() > LAYERS) {
        fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: %slevel_list has %zu entries", place.c_str(),
              levels.size());
    }
    std::string server;
    long long below = -1;
    for (size_t i = 0; i < levels.size(); i++) {
        const FieldPlace entry = place + format("level_list[%zu].", i);
        const uint32_t layer = number_in(levels[i], "net_layer", entry, 0, LAYERS - 1);
        const Json *name = levels[i].find("net_instance_id");
        if (name == nullptr || name->kind != Json::Kind::String || name->text.empty() ||
            name->text.size() > LONGEST_NAME) {
            fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: %snet_instance_id is no name", entry.c_str());
        }
        if (static_cast<long long>(layer) <= below) {
            fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: %snet_layer %u does not rise", entry.c_str(), layer);
        }
        list_in(levels[i], "rank_addr_list", entry);
        below = layer;
        server = i == 0 ? name->text : server;
    }
    return server;
}

} // namespace

void check_rank_list(const Json &root, uint32_t rank, RankTable *table) {
    constexpr uint32_t MOST_RANKS = 65536;
    constexpr uint32_t MOST_DEVICES = 64;
    constexpr uint32_t BACKUP = 64; // a local_id that stands for another one
    const Json *version = root.find("version");
    const std::string found = version != nullptr && version->kind == Json::Kind::String ? version->text : "";
    if (found != "2.0") {
        fault(HCCL_E_PARA,
              "EI0014: version[%s] is invalid, expected value is 2.0: this processor reads no other rank tables",
              found.c_str());
    }
    const uint32_t count = number_in(root, "rank_count", "", 1, MOST_RANKS);
    const std::vector<Json> &ranks = list_in(root, "rank_list", "");
    if (ranks.size() != count) {
        fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: rank_count is %u, rank_list has %zu entries", count,
              ranks.size());
    }
    std::set<uint32_t> seen;
    for (size_t i = 0; i < ranks.size(); i++) {
        const FieldPlace place = format("rank_list[%zu].", i);
        TableRank entry;
        entry.rank = number_in(ranks[i], "rank_id", place, 0, count - 1);
        number_in(ranks[i], "local_id", place, 0, BACKUP);
        entry.device = static_cast<int>(number_in(ranks[i], "device_id", place, 0, MOST_DEVICES));
        if (!seen.insert(entry.rank).second) {
            fault(HCCL_E_PARA, "EI0014: The ranktable is invalid: rank_id %u is there twice", entry.rank);
        }
        const std::string server = server_of(ranks[i], place);
        auto known = std::find(table->server_ids.begin(), table->server_ids.end(), server);
        if (known == table->server_ids.end()) {
            known = table->server_ids.insert(known, server);
            table->addresses.emplace_back();
        }
        entry.server = static_cast<uint32_t>(known - table->server_ids.begin());
        table->ranks.push_back(entry);
    }
    std::sort(table->ranks.begin(), table->ranks.end(),
              [](const TableRank &a, const TableRank &b) { return a.rank < b.rank; });
    if (rank >= count) {
        fault(HCCL_E_PARA, "EI0004: rank %u is not in the ranktable, which has %u ranks", rank, count);
    }
}

} // namespace mock
