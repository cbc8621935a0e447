#include "json.h"

#include <cctype>

#include "common.h"

namespace mock {
namespace {

constexpr int DEEPEST = 64;      // nesting; a rank table needs 6
constexpr size_t MOST = 1000000; // values; a rank has about 5

class Reader {
public:
    explicit Reader(const std::string &text) : text_(text) {}

    bool read(Json *value, std::string *error) {
        const bool good = read_value(value, 0) && at_end();
        if (!good) {
            size_t line = 1;
            for (size_t i = 0; i < place_ && i < text_.size(); i++) {
                line += text_[i] == '\n' ? 1 : 0;
            }
            *error = format("line %zu: %s", line, complaint_);
        }
        return good;
    }

private:
    bool complain(const char *complaint) {
        complaint_ = complaint;
        return false;
    }
    char peek() const { return place_ < text_.size() ? text_[place_] : '\0'; }
    void skip_space() {
        while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') {
            place_++;
        }
    }
    bool at_end() {
        skip_space();
        return place_ == text_.size() || complain("something follows the end of the value");
    }
    bool read_word(const char *word) {
        const size_t length = std::strlen(word);
        if (text_.compare(place_, length, word) != 0) {
            return complain("a value was expected");
        }
        place_ += length;
        return true;
    }
    bool read_value(Json *value, int depth);
    bool read_object(Json *value, int depth);
    bool read_array(Json *value, int depth);
    bool read_string(std::string *text);
    bool read_escape(std::string *text);
    bool read_hex(unsigned *code);
    bool read_number(Json *value);
    bool read_digits();

    const std::string &text_;
    size_t place_ = 0;
    size_t values_ = 0;
    const char *complaint_ = "a value was expected";
};

bool Reader::read_value(Json *value, int depth) {
    if (depth > DEEPEST) {
        return complain("values are nested too deeply");
    }
    if (++values_ > MOST) {
        return complain("too many values");
    }
    skip_space();
    switch (peek()) {
    case '{': return read_object(value, depth);
    case '[': return read_array(value, depth);
    case '"': value->kind = Json::Kind::String; return read_string(&value->text);
    case 't':
        value->kind = Json::Kind::Bool;
        value->truth = true;
        return read_word("true");
    case 'f': value->kind = Json::Kind::Bool; return read_word("false");
    case 'n': return read_word("null");
    default: return read_number(value);
    }
}

bool Reader::read_object(Json *value, int depth) {
    value->kind = Json::Kind::Object;
    place_++;
    skip_space();
    if (peek() == '}') {
        place_++;
        return true;
    }
    for (;;) {
        std::pair<std::string, Json> member;
        skip_space();
        if (peek() != '"') {
            return complain("the name of a member was expected");
        }
        if (!read_string(&member.first)) {
            return false;
        }
        skip_space();
        if (peek() != ':') {
            return complain("':' was expected");
        }
        place_++;
        if (!read_value(&member.second, depth + 1)) {
            return false;
        }
        value->members.push_back(std::move(member));
        skip_space();
        const char next = peek();
        if (next != ',' && next != '}') {
            return complain("',' or '}' was expected");
        }
        place_++;
        if (next == '}') {
            return true;
        }
    }
}

bool Reader::read_array(Json *value, int depth) {
    value->kind = Json::Kind::Array;
    place_++;
    skip_space();
    if (peek() == ']') {
        place_++;
        return true;
    }
    for (;;) {
        Json item;
        if (!read_value(&item, depth + 1)) {
            return false;
        }
        value->items.push_back(std::move(item));
        skip_space();
        const char next = peek();
        if (next != ',' && next != ']') {
            return complain("',' or ']' was expected");
        }
        place_++;
        if (next == ']') {
            return true;
        }
    }
}

bool Reader::read_string(std::string *text) {
    place_++;
    while (place_ < text_.size()) {
        const char c = text_[place_++];
        if (c == '"') {
            return true;
        }
        if (static_cast<unsigned char>(c) < 0x20) {
            return complain("a string holds a control character");
        }
        if (c != '\\') {
            text->push_back(c);
        } else if (!read_escape(text)) {
            return false;
        }
    }
    return complain("a string has no end");
}

bool Reader::read_escape(std::string *text) {
    static const char *const PLAIN = "\"\\/bfnrt";
    static const char *const MEANING = "\"\\/\b\f\n\r\t";
    const char c = peek();
    place_++;
    const char *found = c == '\0' ? nullptr : std::strchr(PLAIN, c);
    if (found != nullptr) {
        text->push_back(MEANING[found - PLAIN]);
        return true;
    }
    unsigned code = 0;
    if (c != 'u' || !read_hex(&code)) {
        return complain("a string holds an unknown escape");
    }
    if (code >= 0xd800 && code < 0xdc00) { // the first half of a pair
        unsigned low = 0;
        if (text_.compare(place_, 2, "\\u") != 0) {
            return complain("half of a surrogate pair");
        }
        place_ += 2;
        if (!read_hex(&low) || low < 0xdc00 || low > 0xdfff) {
            return complain("half of a surrogate pair");
        }
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code < 0x80) {
        text->push_back(static_cast<char>(code));
    } else if (code < 0x800) {
        text->push_back(static_cast<char>(0xc0 | (code >> 6)));
        text->push_back(static_cast<char>(0x80 | (code & 0x3f)));
    } else {
        if (code < 0x10000) {
            text->push_back(static_cast<char>(0xe0 | (code >> 12)));
        } else {
            text->push_back(static_cast<char>(0xf0 | (code >> 18)));
            text->push_back(static_cast<char>(0x80 | ((code >> 12) & 0x3f)));
        }
        text->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3f)));
        text->push_back(static_cast<char>(0x80 | (code & 0x3f)));
    }
    return true;
}

bool Reader::read_hex(unsigned *code) {
    *code = 0;
    for (int i = 0; i < 4; i++) {
        const char c = peek();
        if (!std::isxdigit(static_cast<unsigned char>(c))) {
            return false;
        }
        *code = *code * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        place_++;
    }
    return true;
}

bool Reader::read_digits() {
    const size_t first = place_;
    while (std::isdigit(static_cast<unsigned char>(peek()))) {
        place_++;
    }
    return place_ > first || complain("a value was expected");
}

bool Reader::read_number(Json *value) {
    value->kind = Json::Kind::Number;
    const size_t first = place_;
    if (peek() == '-') {
        place_++;
    }
    const bool zero = peek() == '0';
    if (!read_digits()) {
        return false;
    }
    const size_t sign = text_[first] == '-' ? 1 : 0;
    if (zero && place_ - first > 1 + sign) {
        return complain("a number starts with 0");
    }
    if (peek() == '.') {
        place_++;
        if (!read_digits()) {
            return false;
        }
    }
    if (peek() == 'e' || peek() == 'E') {
        place_++;
        if (peek() == '+' || peek() == '-') {
            place_++;
        }
        if (!read_digits()) {
            return false;
        }
    }
    value->text = text_.substr(first, place_ - first);
    return true;
}

} // namespace

const Json *Json::find(const std::string &name) const {
    const Json *found = nullptr;
    for (const auto &member : members) {
        if (member.first == name) {
            found = &member.second;
        }
    }
    return found;
}

bool parse_json(const std::string &text, Json *value, std::string *error) { return Reader(text).read(value, error); }

} // namespace mock
