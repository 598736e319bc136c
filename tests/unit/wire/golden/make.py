# SPDX-License-Identifier: Apache-2.0
# Wrote the golden files of this folder with the public msgpack package of Python, so that they do not come from the
# code they test. Run by hand when a message is added (`python3 make.py`); a file that is there must never change,
# since peers of version 1 are built against it. The four marked "published" came from the protocol page itself.
import pathlib
import struct

import msgpack

MAX = 2**64 - 1
HELLO, PING, BYE, ACQUIRE, READ, STEER = 0x01, 0x04, 0x05, 0x10, 0x28, 0x29
WELCOME, PONG, BYE_OK, READ_ANSWER, STEER_ANSWER = 0x81, 0x84, 0x85, 0xA8, 0xA9
GOAWAY, ERROR, BUSY = 0xE1, 0xF0, 0xF1


def seq(first, count):
    return bytes(range(first, first + count))


def error(request, code, text, field="", closing=False):
    return (ERROR, request, [code, field, text, closing])


FILES = {
    # messages
    "hello": (HELLO, 1, [1, 1, 1, "billing-worker", 1, [1, 0, 0], b"", 5 * 10**9, 4026531834, b"",
                         "peercred", "", b""]),                                        # published
    "hello_all": (HELLO, 4294967295, [1, 200, 7, "größe", 2, [65535, 300, MAX], seq(0, 16), MAX, 1,
                                      seq(16, 16), "hmac", "edge.1", seq(32, 32)]),
    "acquire": (ACQUIRE, 7, [50 * 10**6, 0, [["api-per-user", b"alice"], [None, b"bob", 3]]]),  # published
    "welcome_ask": (WELCOME, 1, [1, 0, "main", seq(1, 16), seq(17, 16), False, 1, 0,
                                 "uid 1001 is not in access.map", [], [0, 0], 1, 7 * 10**9, 1024, 262144, 65536,
                                 b""]),
    "welcome_map": (WELCOME, 2, [1, 9, "main", seq(1, 16), seq(17, 16), True, 7, 1, "",
                                 ["rules", "state", "stats"], [70000, 300], MAX, 255, 1, 4294967295, 1048576,
                                 seq(0, 32)]),
    "ping": (PING, 3, [MAX]),
    "pong": (PONG, 3, [MAX, 65536]),
    "bye": (BYE, 4, []),
    "bye_ok": (BYE_OK, 4, []),
    "goaway": (GOAWAY, 0, [0, 10**10, "shutting down"]),
    "busy": (BUSY, 9, [10**9]),
    "read": (READ, 5, ["limits", None, None, b"", 1000]),
    "read_all": (READ, 6, ["limit", "api-per-user", b"ali\x00ce\xff", seq(0, 40), 1,
                           {"sort": "name", "deep": [1, -1, True, None, b"x"]}]),
    "read_answer": (READ_ANSWER, 6, [[{"name": "api-per-user", "burst": 10, "rate": 10, "note": ""},
                                      {"name": "b", "debt": -129, "windows": [[1, 2], []], "key": b"\x00",
                                       "on": False}], b"next"]),
    "read_answer_empty": (READ_ANSWER, 5, [[], b""]),
    "steer_reload": (STEER, 7, ["config.reload", None, None, {"dry": True}, 0, ""]),
    "steer_reset": (STEER, 8, ["limit.reset", "api-per-user", b"alice", {}, 0, "ticket 4711"]),
    "steer_step": (STEER, 9, ["clock.step", None, None, {"to_ns": 86400 * 10**9}, 0, ""]),
    "steer_answer": (STEER_ANSWER, 7, [0, "reloaded", 12]),
    "steer_answer_invalid": (STEER_ANSWER, 7, [4, "4:7: unknown key `brust`, did you mean `burst`?", 11]),
    # errors, as the daemon's end words them
    "error_field": error(8, 4, "cost must be 0 .. 1000000000, got -1", "items[0].cost"),  # published
    "error_magic": error(0, 1, "the bytes do not begin a frame (43 57 expected)", closing=True),
    "error_reserved": error(0, 1, "the reserved bytes of the header are not 0", closing=True),
    "error_length": error(0, 1, "a payload of 4294967295 bytes, at most 4096 are taken here", closing=True),
    "error_msgpack": error(2, 1, "the payload is cut short", closing=True),
    "error_behind": error(2, 1, "the payload goes on behind its msgpack value", closing=True),
    "error_deep": error(2, 1, "the payload holds more than 8 levels of arrays and maps", closing=True),
    "error_array": error(2, 1, "the payload holds an array of more than 1024 elements", closing=True),
    "error_map": error(2, 1, "the payload holds a map of more than 64 entries", closing=True),
    "error_ext": error(2, 1, "the payload holds an ext type", closing=True),
    "error_descriptors": error(0, 1, "descriptors are never sent by a client", closing=True),
    "error_frame_version": error(0, 2,
                                 "frame version 2, but this session uses 1; this daemon speaks versions 1 .. 1", closing=True),
    "error_no_version": error(1, 2,
                              "no common version: the client speaks 2 .. 9, this daemon speaks versions 1 .. 1", closing=True),
    "error_not_built": error(7, 3, "ACQUIRE (0x10) is not answered by this version"),
    "error_unknown": error(2, 3, "type 0x7f is not known here"),
    "error_daemons": error(2, 3, "WELCOME (0x81) is sent by the daemon only"),
    "error_not_array": error(2, 4, "the payload must be an array, got a map"),
    "error_missing": error(2, 4, "note is missing", "note"),
    "error_type": error(2, 4, "max_rows must be 1 .. 1000, got a string of 1 bytes", "max_rows"),
    "error_float": error(2, 4, "max_rows must be 1 .. 1000, got a float", "max_rows"),
    "error_negative": error(2, 4, "max_rows must be 1 .. 1000, got -1", "max_rows"),
    "error_nil": error(2, 4, "arguments must be a map, got nil", "arguments"),
    "error_key": error(2, 4, "key must be binary of 0 .. 4096 bytes or nil, got binary of 4097 bytes", "key"),
    "error_twice": error(2, 4, "arguments must be a map, got a map with one key twice", "arguments"),
    "error_flags": error(2, 4, "flags must be 0 .. 3, got 32768", "flags"),
    "error_before": error(2, 5, "READ (0x28) before WELCOME", closing=True),
    "error_again": error(2, 5, "HELLO (0x01) after WELCOME"),
    "error_order": error(5, 5, "request ids must grow; the last was 5"),
    "error_repeat": error(5, 5, "answers are not remembered in this session"),
    "error_look": error(2, 6, "READ (0x28) needs the right look"),
    "error_steer": error(2, 6, "STEER (0x29) needs the right steer"),
    "error_refused": error(1, 6, "uid 1001 is not in access.use", closing=True),
    "error_internal": error(2, 7, "the answer does not fit a frame"),
    "error_too_many": error(1, 8, "1024 sessions are open", closing=True),
}

folder = pathlib.Path(__file__).parent
for name, (kind, request, fields) in FILES.items():
    payload = msgpack.packb(fields, use_bin_type=True)
    data = struct.pack("<HBBHHII", 0x5743, 1, kind, 0, 0, request, len(payload)) + payload
    lines = [data[i:i + 32].hex(" ") for i in range(0, len(data), 32)]
    (folder / f"{name}.hex").write_text("\n".join(lines) + "\n")
