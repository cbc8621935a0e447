#include "handshake.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>

namespace mock {

Nonce make_nonce() {
    Nonce nonce;
    if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
        fault(HCCL_E_SYSCALL, "EI9999: %s", system_error("getrandom").c_str());
    }
    return nonce;
}

static std::string bytes_of(const Nonce &nonce) { return std::string(nonce.begin(), nonce.end()); }

Sum caller_proof(const std::string &key, const Challenge &challenge, Request request) {
    request.proof = {};
    return keyed_hash(key, "caller" + bytes_of(challenge.nonce) +
                               std::string(reinterpret_cast<const char *>(&request), sizeof(request)));
}

Sum answer_proof(const std::string &key, const Request &request, Reply reply) {
    reply.proof = {};
    return keyed_hash(key, "answer" + bytes_of(request.nonce) +
                               std::string(reinterpret_cast<const char *>(&reply), sizeof(reply)));
}

Address make_address(const std::string &host, uint16_t port) {
    Address address;
    auto *v4 = reinterpret_cast<sockaddr_in *>(&address.storage);
    auto *v6 = reinterpret_cast<sockaddr_in6 *>(&address.storage);
    if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        address.size = sizeof(*v4);
    } else if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        address.size = sizeof(*v6);
    } else {
        fault(HCCL_E_PARA, "EI0004: [%s] is not an IP address", host.c_str());
    }
    return address;
}

Descriptor make_tcp_socket(const Address &address) {
    Descriptor socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) {
        fault(HCCL_E_SYSCALL, "EI9999: %s", system_error("socket").c_str());
    }
    return socket;
}

void tune(const Descriptor &socket) {
    const auto set = [&](int level, int name, int value) {
        setsockopt(socket.get(), level, name, &value, sizeof(value));
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(IPPROTO_TCP, TCP_KEEPCNT, 5);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 8000);
}

std::string name_of(const sockaddr_storage &storage) {
    char text[INET6_ADDRSTRLEN] = {};
    if (storage.ss_family == AF_INET) {
        inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in *>(&storage)->sin_addr, text, sizeof(text));
    } else if (storage.ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6 *>(&storage)->sin6_addr, text, sizeof(text));
    }
    return format("%s port %u", text, port_of(storage));
}

uint16_t port_of(const sockaddr_storage &storage) {
    return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6 *>(&storage)->sin6_port
                                               : reinterpret_cast<const sockaddr_in *>(&storage)->sin_port);
}

} // namespace mock
