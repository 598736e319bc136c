// SPDX-License-Identifier: Apache-2.0
// The session machines of both ends, without I/O, clock or threads: bytes and times go in, actions
// come out, and the caller carries them out in their order. Sockets, deadlines and descriptors stay
// with the caller. The daemon's end is server_session.hpp, the client's client_session.hpp.
//
//   NEW --HELLO--> (application: welcome() or refuse()) --> READY --BYE or go_away()--> DRAINING
//   any state --bad frame, deadline, end--> CLOSED
//
//   state     from the client                     else                     deadline
//   NEW       HELLO, then nothing until WELCOME   ERROR not_now, closed    hello_ns, from accept
//   READY     all requests, PING, BYE             ERROR, the session stays idle_ns without a frame
//   DRAINING  OUTCOME CANCEL REFUND PING BYE      BUSY                     drain_ns, then closed
//   any       half a frame                                                 inside_frame_ns
//
// Bounds: one frame is held (FrameReader); unanswered requests by the credit of WELCOME; answers
// remembered by answer_memory.hpp; events by event_queue.hpp; a bad frame is answered once and ends
// the session. What a peer sends can only become actions.
// Thread safety: a machine belongs to one connection and one thread at a time. No exception leaves.
#pragma once
#include "wire/client_session.hpp"
#include "wire/server_session.hpp"
