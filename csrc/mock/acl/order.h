// What is known to come before what. Not what happens to be finished, which changes from run to run, but what the program
// itself has ordered: by the queue of a stream, a wait for an event, or a synchronisation of the host.

#ifndef ASCEND_MOCK_ACL_ORDER_H
#define ASCEND_MOCK_ACL_ORDER_H

#include <map>

#include "runtime.h"

namespace mock {

// For each stream, by number: how many of its tasks have ended before.
using Before = std::map<int, uint64_t>;

// What a stream's task at this position, and whatever waits for it, comes after; the task itself included.
Before order_through(int stream, uint64_t position);
// From now on tasks of the stream come after these.
void order_wait(int stream, const Before &before);
// From now on every task that anybody queues comes after these: the host has seen their end.
void order_seen(const Before &before);
// The stream has ended and everybody comes after it.
void order_end(int stream);

} // namespace mock

#endif
