# SPDX-License-Identifier: Apache-2.0
# Wrote the golden files of this folder with the public msgpack package of Python, so that they do not come from the
# code they test. Run by hand when a message is added (`python3 make.py`); a file that is there must never change,
# since peers of version 1 are built against it. The four marked "published" came from the protocol page itself.
import pathlib
import struct

import msgpack

MAX = 2**64 - 1
HELLO, PING, BYE, ACQUIRE, READ, STEER = 0x01, 0x04, 0x05, 0x10, 0x28, 0x29
RESOLVE, PEEK, CANCEL, REFUND, ENTER, OUTCOME, PRESENT, WATCH = 0x08, 0x11, 0x12, 0x13, 0x18, 0x19, 0x1A, 0x2A
EVENT, ANSWER = 0xE0, 0x80
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
    "acquire_answer": (ACQUIRE | ANSWER, 7, [[[0, 9, 0, 10**8, 0, 0, 0],
                                              [1, 2, 10**8, 8 * 10**8, 0, 0, 0]]]),   # published
    "acquire_all": (ACQUIRE, 8, [MAX, 2 * 10**8, [["api-per-user", b"", 0], [None, b"\x00\xff", 10**9, 1],
                                                  ["tenant", b"acme", 1, 1]]]),
    "acquire_answer_all": (ACQUIRE | ANSWER, 8, [[[0, MAX, 0, 2**32, 300, 5, 1023, 1], [2, 0, MAX, 65536, 0, 255, 64],
                                                  [64, "no limit `tenat`; did you mean `tenant`?"], [65, ""]]]),
    "resolve": (RESOLVE, 9, [[[0, "api-per-user"], [1, "fraudCheck"], [2, "bank-1"], [3, "checkout"]]]),
    "resolve_answer": (RESOLVE | ANSWER, 9, [[[0, {"windows": [[10, 10**9, 10]], "max_wait_ns": 0,
                                                   "ip_prefix": [32, 64]}],
                                              [64, ["fraudChecks", "fraud"]], [72, []], [0, {}]]]),
    "peek": (PEEK, 10, [[["api-per-user", b"alice"], [None, b"bob", 3]]]),
    "peek_answer": (PEEK | ANSWER, 10, [[[0, 9, 0, 10**8, 0, 0, 0], [3, 0, MAX, MAX, 0, 0, 0]]]),
    "cancel": (CANCEL, 11, [7]),
    "cancel_answer": (CANCEL | ANSWER, 11, [0, 4]),
    "refund": (REFUND, 12, [[[7, 0], [7, 255, 3], [4294967295, 1, 10**9]]]),
    "refund_answer": (REFUND | ANSWER, 12, [[[0, 1], [71, 0], [70, 0]]]),
    "enter": (ENTER, 13, [0, 0, [], None, "fraudCheck"]),
    "enter_all": (ENTER, 14, [50 * 10**6, 2 * 10**8, [["api-per-user", b"alice"], ["tenant", b"acme", 2]],
                              "fraudCheck", "fraudCheck"]),
    "enter_answer": (ENTER | ANSWER, 13, [[5, 3, 0, 0, 15 * 10**9, 0, 0, 0, 0, 2, 7, b"", MAX, 0, 0, 0, 10**9,
                                           "failure rate 60 % of 10 calls"]]),
    "enter_answer_all": (ENTER | ANSWER, 14, [[0, 0, 1, 8, 0, 10**8, 300, 2, 512, 3, 2**32, seq(0, 48), 30 * 10**9, 7,
                                               10**6, 70000, 5, ""]]),
    "enter_apart": (ENTER, 14, [0, MAX, [], "gate", "fraudCheck", 2 * 10**9, True]),
    "enter_answer_apart": (ENTER | ANSWER, 14, [[0, 0, 0, 0, 0, 0, 0, 0, 512, 1, 7, b"call", MAX, 0, 0, 0, 0, "", 0, 300, 0,
                                                 [], seq(0, 48)]]),
    "enter_answer_shared": (ENTER | ANSWER, 14, [[5, 3, 0, 0, 0, 0, 0, 0, 1024, 2, 0, b"", MAX, 0, 0, 0, 0, "by hand", 0, 0, 0,
                                                  [], b"", "bank-*"]]),
    "enter_answer_error": (ENTER | ANSWER, 14, [[66, "identity edge.1 may not use `tenant`"]]),
    "outcome": (OUTCOME, 15, [[[seq(0, 48), 0], [b"t", 1, 10**6], [b"", 4, MAX, MAX], [b"u", 2, 0, 0, "timeout"]]]),
    "outcome_all": (OUTCOME, 15, [[[b"v", 1, MAX, 0, "http-503", 2 * 10**9],
                                   [b"w", 1, MAX, 0, "slow-bank", MAX, ["bank", "exception"]]]]),
    "outcome_answer": (OUTCOME | ANSWER, 15, [[0, 68, 67, 0]]),
    "present": (PRESENT, 16, [[seq(0, 48), b"t"]]),
    "present_answer": (PRESENT | ANSWER, 16, [[seq(1, 48), b""]]),
    "watch": (WATCH, 17, [511, "bank-*", 4711, 4096]),
    "watch_answer": (WATCH | ANSWER, 17, [1, 2**32]),
    "event": (EVENT, 0, [1, [[4711, 5 * 10**9, 1, "bank-1", 7, {"from": "CLOSED", "to": "OPEN"}],
                             [4712, 5 * 10**9 + 1, 8, "", 0, {}]], 3]),
    "event_missed": (EVENT, 0, [4, [], MAX]),
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
    "error_not_built": error(7, 3, "LEASE (0x20) is not answered by this version"),
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
    "error_cost": error(2, 4, "cost must be 0 .. 1000000000, got 1000000001", "items[1].cost"),
    "error_item_flags": error(2, 4, "flags must be 0 .. 1, got 2", "items[1].flags"),
    "error_first_item": error(2, 4, "limit must be a name ([A-Za-z0-9][A-Za-z0-9._:-]{0,62}), got nil",
                              "items[0].limit"),
    "error_items": error(2, 4, "items must be an array of 1 .. 256 elements, got 257", "items"),
    "error_items_frame": error(2, 4, "items must be an array of 1 .. 85 elements with frames of 4096 bytes, got 86",
                               "items"),
    "error_enter_items": error(2, 4, "items must be an array of 0 .. 8 elements, got 9", "items"),
    "error_resolve": error(2, 4, "names must be an array of 1 .. 64 elements, got 65", "names"),
    "error_kind": error(2, 4, "kind must be 0 .. 3, got 4", "names[0].kind"),
    "error_ticket": error(2, 4, "ticket must be binary of 0 .. 48 bytes, got binary of 49 bytes",
                          "reports[0].ticket"),
    "error_class": error(2, 4, "class must be a string of 0 .. 64 bytes, got a string of 65 bytes",
                         "reports[0].class"),
    "error_kinds": error(2, 4, "kinds must be 0 .. 511, got 512", "kinds"),
    "error_pending": error(2, 4, "max_pending must be 1 .. 4096, got 4097", "max_pending"),
    "error_pattern": error(2, 4, "pattern must be a string of 0 .. 64 bytes, got a string of 65 bytes", "pattern"),
    "error_watches": error(6, 4, "kinds must be 0, which ends all watches: 4 are open", "kinds"),
    "error_was": error(2, 5, "request 2 was ACQUIRE (0x10)"),
    "error_use": error(2, 6, "ACQUIRE (0x10) needs the right use"),
    "error_use_or_look": error(2, 6, "PEEK (0x11) needs the right use or look"),
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
