#include "socket.h"

#include <cstddef>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace mock {
namespace {

constexpr int BACKLOG = 4096;
constexpr size_t PIECE = 32 * 1024; // what a socket of any kind takes at once

Descriptor make_socket() {
    Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) {
        fault(HCCL_E_SYSCALL, "EI9999: %s", system_error("socket").c_str());
    }
    return socket;
}

socklen_t fill_address(const std::string &name, sockaddr_un *address) {
    *address = {};
    address->sun_family = AF_UNIX;
    // The first byte stays 0: an abstract name. The user id keeps users apart who share a machine.
    const std::string full = format("ascend-mock-%u-%s", static_cast<unsigned>(geteuid()), name.c_str());
    if (full.size() >= sizeof(address->sun_path)) {
        fault(HCCL_E_INTERNAL, "EI9999: the socket name %s is too long", full.c_str());
    }
    std::memcpy(address->sun_path + 1, full.data(), full.size());
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + full.size());
}

bool same_user(const Descriptor &socket, pid_t *pid) {
    ucred who{};
    socklen_t size = sizeof(who);
    if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.uid != geteuid()) {
        warn_once("a process of another user holds or calls a socket of this job; it is ignored");
        return false;
    }
    if (pid != nullptr) {
        *pid = who.pid;
    }
    return true;
}

} // namespace

Descriptor listen_on(const std::string &name) {
    Descriptor socket = make_socket();
    sockaddr_un address;
    const socklen_t size = fill_address(name, &address);
    if (bind(socket.get(), reinterpret_cast<sockaddr *>(&address), size) != 0) {
        if (errno == EADDRINUSE) {
            return Descriptor();
        }
        fault(HCCL_E_SYSCALL, "EI9999: %s", system_error("bind").c_str());
    }
    if (listen(socket.get(), BACKLOG) != 0) {
        fault(HCCL_E_SYSCALL, "EI9999: %s", system_error("listen").c_str());
    }
    return socket;
}

Connect connect_to(const std::string &name, Descriptor *socket, pid_t *holder) {
    Descriptor made = make_socket();
    sockaddr_un address;
    const socklen_t size = fill_address(name, &address);
    if (connect(made.get(), reinterpret_cast<sockaddr *>(&address), size) != 0) {
        if (errno == ECONNREFUSED || errno == ENOENT) {
            return Connect::NobodyListens;
        }
        if (errno == EAGAIN || errno == EINTR) {
            return Connect::Busy; // so many wait there that one more finds no place
        }
        fault(HCCL_E_SYSCALL, "EI9999: %s", system_error("connect").c_str());
    }
    if (!same_user(made, holder)) {
        return Connect::OtherUser;
    }
    *socket = std::move(made);
    return Connect::Done;
}

Descriptor accept_from(const Descriptor &listener, pid_t *peer) {
    for (;;) {
        Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket || same_user(socket, peer)) {
            return socket;
        }
    }
}

bool send_message(const Descriptor &socket, const void *data, size_t bytes, int file) {
    iovec part{const_cast<void *>(data), bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (file >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(header), &file, sizeof(file));
    }
    return sendmsg(socket.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

ssize_t receive_message(const Descriptor &socket, void *data, size_t bytes, Descriptor *file) {
    iovec part{data, bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t length = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
    if (length < 0) {
        return errno == EAGAIN || errno == EINTR ? -1 : 0;
    }
    for (cmsghdr *header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
            int number = -1;
            std::memcpy(&number, CMSG_DATA(header), sizeof(number));
            Descriptor received(number);
            if (file != nullptr) {
                *file = std::move(received);
            }
        }
    }
    return (message.msg_flags & MSG_TRUNC) != 0 ? 0 : length;
}

int milliseconds_until(Clock::time_point limit) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now()).count();
    return left > 0 ? static_cast<int>(left) + 1 : 0;
}

bool await(const Descriptor &socket, short events, Clock::time_point limit) {
    pollfd file{socket.get(), events, 0};
    int ready = -1;
    do {
        const int left = milliseconds_until(limit);
        ready = left > 0 ? poll(&file, 1, left) : 0;
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

bool send_whole(const Descriptor &socket, const void *data, size_t bytes, Clock::time_point limit) {
    for (size_t sent = 0; sent < bytes;) {
        const size_t piece = std::min(bytes - sent, PIECE);
        const ssize_t count =
            send(socket.get(), static_cast<const char *>(data) + sent, piece, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count > 0) {
            sent += static_cast<size_t>(count);
        } else if ((errno != EAGAIN && errno != EINTR) || !await(socket, POLLOUT, limit)) {
            return false;
        }
    }
    return true;
}

bool receive_whole(const Descriptor &socket, void *data, size_t bytes, Clock::time_point limit) {
    for (size_t got = 0; got < bytes;) {
        const ssize_t count = recv(socket.get(), static_cast<char *>(data) + got, bytes - got, MSG_DONTWAIT);
        if (count > 0) {
            got += static_cast<size_t>(count);
        } else if (count == 0 || (errno != EAGAIN && errno != EINTR) || !await(socket, POLLIN, limit)) {
            return false;
        }
    }
    return true;
}

} // namespace mock
