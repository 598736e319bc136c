// SPDX-License-Identifier: Apache-2.0
#include "src/ask/ask_session.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>

namespace cutwater::client {
namespace {

using wire::MessageType;

void put_number(char* at, std::uint64_t number, std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<char>(number >> (8 * i));
}

/// The header in place, in front of its payload: wire::encode_frame() would copy both.
void put_header(std::string& frame, const wire::FrameHeader& header) noexcept {
  char* const at = frame.data();
  put_number(at, wire::kMagic, 2);
  put_number(at + 2, header.version, 1);
  put_number(at + 3, static_cast<std::uint8_t>(header.type), 1);
  put_number(at + 4, header.flags, 2);
  put_number(at + 6, 0, 2);
  put_number(at + 8, header.request, 4);
  put_number(at + 12, frame.size() - wire::kHeaderSize, 4);
}

std::uint16_t flags_of(const Call& call) noexcept {
  return static_cast<std::uint16_t>((call.repeat ? wire::kFlagRepeat : 0) |
                                    (call.quiet ? wire::kFlagQuiet : 0));
}

std::size_t payload_bytes(const Call& call) noexcept {
  return call.frame->size() - wire::kHeaderSize;
}

}  // namespace

void AskSession::connected(const wire::Welcome& welcome, bool resumed) {
  version_ = welcome.version;
  max_frame_ = welcome.max_frame;
  credit_items_ = welcome.credit_items;
  credit_bytes_ = welcome.credit_bytes;
  in_flight_ = items_out_ = 0;
  bytes_out_ = 0;
  abandoned_count_ = 0;
  leftover_.clear();
  broken_[0] = 0;
  draining_ = false;
  up_ = true;
  started_ = false;
  sent_of_next_ = 0;
  if (!resumed) last_request_ = 1;
  for (Call* call = first_; call != nullptr;) {
    Call* const behind = call->behind;
    if (call->request != 0 && resumed) call->repeat = true;
    if (!resumed && (call->request != 0 || call->posted)) end(*call, AskEnd::Lost);
    call = behind;
  }
  next_ = first_;
}

void AskSession::disconnected() noexcept {
  up_ = false;
  leftover_.clear();
  if (started_ && sent_of_next_ == 0 && !next_->repeat) next_->request = 0;
  started_ = false;
  sent_of_next_ = 0;
}

void AskSession::fail_all() noexcept {
  while (first_ != nullptr) {
    end(*first_, first_->request != 0 ? AskEnd::Lost : AskEnd::Unsent);
  }
}

void AskSession::enqueue(Call& call) noexcept {
  call.before = last_;
  call.behind = nullptr;
  (last_ != nullptr ? last_->behind : first_) = &call;
  last_ = &call;
  if (next_ == nullptr) next_ = &call;
  if (payload_bytes(call) > max_frame_) {
    std::strncpy(call.error_text, "the ask does not fit a frame of this daemon",
                 sizeof call.error_text - 1);
    call.error_code = wire::ErrorCode::InvalidArgument;
    end(call, AskEnd::Failed);
  }
}

void AskSession::abandon(Call& call) {
  const bool went_out = up_ && call.request != 0 && is_sent(call);
  if (&call == next_ && went_out) keep_leftover(call);
  // A quiet one took no credit, and no answer to it will come.
  const bool counts = !call.quiet;
  if (counts && &call == next_ && started_ && !went_out) {
    give_credit(call.items, payload_bytes(call));
  }
  if (counts && went_out) remember_abandoned(call);
  unlink(call);
  call.end = AskEnd::Late;
}

bool AskSession::take_back(Call& call) noexcept {
  if (call.end != AskEnd::Pending || call.repeat || is_sent(call)) return false;
  if (&call == next_ && started_ && !call.quiet) give_credit(call.items, payload_bytes(call));
  unlink(call);
  call.request = 0;
  return true;
}

void AskSession::keep_leftover(const Call& call) {
  try {
    leftover_.assign(*call.frame, sent_of_next_);
  } catch (const std::exception&) {
    lost("no memory for the rest of a frame");
  }
}

void AskSession::remember_abandoned(const Call& call) {
  if (abandoned_count_ == kMostAbandoned) {
    lost("it answers too slowly: too many asks were given up");
    return;
  }
  abandoned_[abandoned_count_++] = {call.request, call.items,
                                    static_cast<std::uint32_t>(payload_bytes(call))};
}

/// Sent in this connection, at least in part: it stands before next_, or is next_ and under way.
bool AskSession::is_sent(const Call& call) const noexcept {
  if (&call == next_) return sent_of_next_ != 0;
  for (const Call* at = next_; at != nullptr; at = at->behind) {
    if (at == &call) return false;
  }
  return true;
}

bool AskSession::start_next() noexcept {
  if (draining_ || is_broken()) return false;
  Call& call = *next_;
  const std::size_t bytes = payload_bytes(call);
  const bool alone = in_flight_ == 0;
  if (!alone && (items_out_ + call.items > credit_items_ || bytes_out_ + bytes > credit_bytes_)) {
    return false;
  }
  if (!call.repeat) {
    if (last_request_ == std::numeric_limits<std::uint32_t>::max()) {
      lost("the request ids of the session are used up");
      return false;
    }
    call.request = ++last_request_;
  }
  put_header(*call.frame, {.version = version_,
                           .type = call.type,
                           .flags = flags_of(call),
                           .request = call.request});
  if (call.quiet) return true;
  ++in_flight_;
  items_out_ += call.items;
  bytes_out_ += bytes;
  return true;
}

std::string_view AskSession::unsent() noexcept {
  if (!up_) return {};
  if (!leftover_.empty()) return leftover_;
  if (next_ == nullptr) return {};
  if (!started_) {
    if (!start_next()) return {};
    started_ = true;
  }
  return std::string_view(*next_->frame).substr(sent_of_next_);
}

void AskSession::sent(std::size_t bytes) noexcept {
  if (!leftover_.empty()) {
    leftover_.erase(0, bytes);
    return;
  }
  sent_of_next_ += bytes;
  if (sent_of_next_ < next_->frame->size()) return;
  Call& gone = *next_;
  next_ = next_->behind;
  started_ = false;
  sent_of_next_ = 0;
  if (gone.quiet) end(gone, AskEnd::Answered);
}

std::size_t AskSession::feed(std::string_view bytes) {
  const std::size_t all = bytes.size();
  while (!is_broken() && bytes.size() >= wire::kHeaderSize) {
    const auto header = wire::decode_header(bytes, version_, max_frame_);
    if (!header) {
      lost(header.fault().text);
      break;
    }
    if (bytes.size() - wire::kHeaderSize < header->length) break;
    on_frame(*header, bytes.substr(wire::kHeaderSize, header->length));
    bytes.remove_prefix(wire::kHeaderSize + header->length);
  }
  return all - bytes.size();
}

void AskSession::on_frame(const wire::FrameHeader& header, std::string_view payload) {
  if (header.type == MessageType::Error) return on_error(header.request, payload);
  if (header.type == MessageType::Goaway) {
    draining_ = true;
    return;
  }
  // A push of a newer daemon that nobody here asked for.
  if (header.request == 0) return;
  on_answer(header, payload);
}

void AskSession::on_error(std::uint32_t request, std::string_view payload) {
  const auto error = wire::decode<wire::ErrorMessage>(payload);
  if (!error) return lost("an ERROR that is none");
  if (Call* const call = in_flight(request)) {
    give_credit(call->items, payload_bytes(*call));
    error->text.copy(call->error_text, sizeof call->error_text - 1);
    call->error_code = error->code;
    end(*call, AskEnd::Failed);
  } else if (request != 0) {
    forget_abandoned(request);
  }
  if (error->closing || request == 0) lost(error->text);
}

void AskSession::on_answer(const wire::FrameHeader& header, std::string_view payload) {
  Call* const call = in_flight(header.request);
  if (call == nullptr) {
    forget_abandoned(header.request);
    // One that was given up before a cut may be answered after it.
    if (header.request > last_request_) lost("an answer to nothing that was asked");
    return;
  }
  give_credit(call->items, payload_bytes(*call));
  if (header.type == MessageType::Busy) {
    const auto busy = wire::decode<wire::Busy>(payload);
    if (!busy) return lost("a BUSY that is none");
    call->retry_after_ns = busy->retry_after_ns;
    return end(*call, AskEnd::Busy);
  }
  const auto wanted = static_cast<std::uint8_t>(call->type) | wire::kFromDaemon;
  if (static_cast<std::uint8_t>(header.type) != wanted || !call->take(*call, payload)) {
    end(*call, AskEnd::Lost);
    return lost("an answer that does not fit its ask");
  }
  end(*call, AskEnd::Answered);
}

Call* AskSession::in_flight(std::uint32_t request) noexcept {
  if (request == 0) return nullptr;
  for (Call* call = first_; call != next_; call = call->behind) {
    if (call->request == request) return call;
  }
  return nullptr;
}

void AskSession::forget_abandoned(std::uint32_t request) noexcept {
  for (std::size_t i = 0; i < abandoned_count_; ++i) {
    if (abandoned_[i].request != request) continue;
    give_credit(abandoned_[i].items, abandoned_[i].bytes);
    abandoned_[i] = abandoned_[--abandoned_count_];
    return;
  }
}

void AskSession::give_credit(std::uint32_t items, std::size_t bytes) noexcept {
  --in_flight_;
  items_out_ -= items;
  bytes_out_ -= bytes;
}

Call* AskSession::finished() noexcept {
  Call* const call = finished_;
  if (call != nullptr) finished_ = call->behind;
  return call;
}

void AskSession::unlink(Call& call) noexcept {
  if (next_ == &call) {
    next_ = call.behind;
    started_ = false;
    sent_of_next_ = 0;
  }
  (call.before != nullptr ? call.before->behind : first_) = call.behind;
  (call.behind != nullptr ? call.behind->before : last_) = call.before;
  call.before = call.behind = nullptr;
}

void AskSession::end(Call& call, AskEnd how) noexcept {
  unlink(call);
  call.end = how;
  call.behind = finished_;
  finished_ = &call;
}

void AskSession::lost(std::string_view why) noexcept {
  if (broken_[0] != 0) return;
  broken_[why.copy(broken_, sizeof broken_ - 1)] = 0;
}

}  // namespace cutwater::client
