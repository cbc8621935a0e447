// The rules of rank tables, and how their fields are read: a missing one, or one of another kind, is an error with its
// place in the table.

#ifndef ASCEND_MOCK_HCCL_TABLE_RULES_H
#define ASCEND_MOCK_HCCL_TABLE_RULES_H

#include "json.h"
#include "table.h"

namespace mock {

// Fills in the table for this rank, or fails with the vendor's code for the first rule that it breaks.
void check_table(const Json &root, uint32_t rank, RankTable *table);

// The same for the tables of the Ascend 950.
void check_rank_list(const Json &root, uint32_t rank, RankTable *table);

// A field by its place, for messages: "server_list[1].device[0].rank_id".
using FieldPlace = std::string;

inline const Json &member(const Json &object, const char *name, const FieldPlace &place) {
    const Json *found = object.kind == Json::Kind::Object ? object.find(name) : nullptr;
    if (found == nullptr) {
        fault(HCCL_E_NOT_FOUND, "EI0004: The ranktable is invalid: %s%s is missing", place.c_str(), name);
    }
    return *found;
}

inline const std::string &text_of(const Json &value, const char *name, const FieldPlace &place) {
    if (value.kind != Json::Kind::String) {
        fault(HCCL_E_PARA, "EI0004: The ranktable is invalid: %s%s is not string!", place.c_str(), name);
    }
    return value.text;
}

inline const std::string &text_member(const Json &object, const char *name, const FieldPlace &place) {
    return text_of(member(object, name, place), name, place);
}

inline const std::vector<Json> &list_member(const Json &object, const char *name, const FieldPlace &place) {
    const Json &list = member(object, name, place);
    if (list.kind != Json::Kind::Array || list.items.empty()) {
        fault(HCCL_E_PARA, "EI0004: The ranktable is invalid: %s%s is not a list with entries", place.c_str(), name);
    }
    return list.items;
}

inline uint32_t number_member(const Json &object, const char *name, const FieldPlace &place, uint32_t most,
                              const char *code) {
    const std::string &text = text_member(object, name, place);
    long long value = 0;
    const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || !parse_number(text.c_str(), 0, most, &value)) {
        fault(HCCL_E_PARA, "%s: The ranktable is invalid: %s%s [%s] is not a number from 0 to %u", code, place.c_str(),
              name, text.c_str(), most);
    }
    return static_cast<uint32_t>(value);
}

} // namespace mock

#endif
