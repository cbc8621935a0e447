// The side that calls.

#include "calls.h"

#include <poll.h>

#include "comm.h"
#include "handshake.h"
#include "network.h"
#include "socket.h"

namespace mock {
namespace {

constexpr std::chrono::milliseconds ATTEMPT(1000); // a caller's patience before it tries again
constexpr std::chrono::seconds ANSWER(6); // and once it has said who it is, as it may be taken in: above HANDSHAKE

bool connect_in_time(const Descriptor &socket, const Address &address, Clock::time_point limit, std::string *why) {
    int error = 0;
    if (connect(socket.get(), reinterpret_cast<const sockaddr *>(&address.storage), address.size) != 0) {
        error = errno;
        socklen_t size = sizeof(error);
        if (error == EINPROGRESS) {
            error = ETIMEDOUT;
            if (await(socket, POLLOUT, limit)) {
                getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
            }
        }
    }
    *why = error == 0 ? "" : std::strerror(error);
    return error == 0;
}

// One attempt: a connection to whoever listens there, both sides' proofs given. False, with the reason, if it did not come
// so far; `reply` holds a proved answer, which may be a refusal.
bool call(const std::string &key, const Address &address, Request request, Descriptor *socket, Reply *reply,
          std::string *why) {
    const auto limit = Clock::now() + ATTEMPT;
    *socket = make_tcp_socket(address);
    if (!connect_in_time(*socket, address, limit, why)) {
        return false;
    }
    tune(*socket);
    *why = "whoever listens there does not answer as a rank of this job does";
    Challenge challenge{};
    if (!receive_whole(*socket, &challenge, sizeof(challenge), limit) || challenge.magic != CALL_MAGIC) {
        return false;
    }
    request.magic = CALL_MAGIC;
    request.nonce = make_nonce();
    request.proof = caller_proof(key, challenge, request);
    if (send(socket->get(), &request, sizeof(request), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(request) ||
        !receive_whole(*socket, reply, sizeof(*reply), Clock::now() + ANSWER) || reply->magic != CALL_MAGIC) {
        return false;
    }
    const Sum proof = answer_proof(key, request, *reply);
    if (!same(proof.data(), reply->proof.data(), proof.size())) {
        return false;
    }
    reply->reason[sizeof(reply->reason) - 1] = '\0';
    *why = reply->reason;
    return true;
}

} // namespace

bool call_peer(Comm &comm, uint32_t peer, std::string *why) {
    const Network &network = *comm.plan().network;
    const Member &member = comm.plan().members[peer];
    Request request{};
    request.from = comm.rank();
    request.to = peer;
    copy_text(request.name, sizeof(request.name), comm.plan().id);
    copy_text(request.members, sizeof(request.members), comm.members_digest());
    Descriptor socket;
    Reply reply{};
    const uint16_t port = network.port(member.server, member.physical_device);
    if (!call(network.key, make_address(network.hosts[member.server], port), request, &socket, &reply, why) ||
        reply.code == HCCL_E_AGAIN) {
        return false;
    }
    if (reply.code != HCCL_SUCCESS) {
        fault(static_cast<HcclResult>(reply.code), "EI0005: %s refused the link: %s", comm.peer_name(peer).c_str(),
              reply.reason);
    }
    comm.attach_wire(peer, std::move(socket));
    return true;
}

bool call_by_name(const std::string &key, const std::string &host, uint16_t port, const std::string &name,
                  Descriptor *socket, std::string *why) {
    Request request{};
    copy_text(request.name, sizeof(request.name), name);
    Reply reply{};
    if (!call(key, make_address(host, port), request, socket, &reply, why)) {
        return false;
    }
    if (reply.code != HCCL_SUCCESS) {
        fault(static_cast<HcclResult>(reply.code), "%s port %u: %s", host.c_str(), port, reply.reason);
    }
    return true;
}

} // namespace mock
