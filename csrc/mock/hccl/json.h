// A small strict reader of JSON, for rank tables.

#ifndef ASCEND_MOCK_HCCL_JSON_H
#define ASCEND_MOCK_HCCL_JSON_H

#include <string>
#include <utility>
#include <vector>

namespace mock {

struct Json {
    enum class Kind { Null, Bool, Number, String, Array, Object };

    Kind kind = Kind::Null;
    std::string text; // of a string; of a number as it was written
    bool truth = false;
    std::vector<Json> items;
    std::vector<std::pair<std::string, Json>> members;

    // The member of an object; nullptr if there is none. Of two with one name the later counts.
    const Json *find(const std::string &name) const;
};

// False for anything but one complete JSON value; `error` then says what and where ("line 3: ...").
bool parse_json(const std::string &text, Json *value, std::string *error);

} // namespace mock

#endif
