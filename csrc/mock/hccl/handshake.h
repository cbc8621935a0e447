// The words by which a caller and whoever listens prove to each other that they belong to the same job.

#ifndef ASCEND_MOCK_HCCL_HANDSHAKE_H
#define ASCEND_MOCK_HCCL_HANDSHAKE_H

#include <array>
#include <string>

#include <sys/socket.h>

#include "failure.h"
#include "proof.h"

namespace mock {

constexpr uint32_t CALL_MAGIC = 0x4d4b4843;
constexpr std::chrono::seconds HANDSHAKE(3); // how long a caller may take until it has said who it is

using Nonce = std::array<unsigned char, 16>;

// The three messages of a call. Both sides run the same build of the mock, so plain structures do.
struct Challenge {
    uint32_t magic;
    uint32_t version;
    Nonce nonce;
};

struct Request {
    uint32_t magic;
    uint32_t from;
    uint32_t to;
    uint32_t reserved;
    char name[40]; // id of a communicator, or a name of `receive_callers`
    char members[40];
    Nonce nonce;
    Sum proof;
};

struct Reply {
    uint32_t magic;
    uint32_t code; // HcclResult; AGAIN: call later
    char reason[256];
    Sum proof;
};

Nonce make_nonce();
Sum caller_proof(const std::string &key, const Challenge &challenge, Request request);
Sum answer_proof(const std::string &key, const Request &request, Reply reply);

struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;
};

// Fails with EI0004 for what is no IP address.
Address make_address(const std::string &host, uint16_t port);
std::string name_of(const sockaddr_storage &storage); // "10.0.0.1 port 60003"
uint16_t port_of(const sockaddr_storage &storage);
Descriptor make_tcp_socket(const Address &address);
// A peer whose machine or cable is gone says nothing: the kernel finds out by asking it.
void tune(const Descriptor &socket);

} // namespace mock

#endif
