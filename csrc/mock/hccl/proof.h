// How two ranks prove over a network that they belong to the same job: HMAC-SHA-256 over each other's random numbers.

#ifndef ASCEND_MOCK_HCCL_PROOF_H
#define ASCEND_MOCK_HCCL_PROOF_H

#include <array>
#include <cstdint>
#include <string>

namespace mock {

using Sum = std::array<unsigned char, 32>;

Sum sha256(const std::string &text);
Sum keyed_hash(const std::string &key, const std::string &text);
// Takes the same time wherever the two differ.
bool same(const unsigned char *first, const unsigned char *second, size_t bytes);

} // namespace mock

#endif
