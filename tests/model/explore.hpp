// SPDX-License-Identifier: Apache-2.0
// A small explicit-state model checker: breadth-first, every state visited once, the shortest run
// to whatever breaks.
//
// A model is a plain-bytes State and the steps that lead out of it. One step is one atomic
// operation: a load, a swap, a fetch-add, a reading of the clock, a futex call. A step is either
//   fair:   a step of an actor. It will happen if it stays enabled; or
//   unfair: a step of the world (a kill, a deadline, a change from outside). It may never happen.
// A process that was stopped for ever is simply one that gets no more steps, so no such step
// exists. A step that leads back to its own state is waiting (for the clock, say) and counts as
// none. A state with no fair step is final.
//
// Three kinds of rules are checked: those a step may break (Model::fail while it is made), those of
// every state (check) and those of every final state (check_final). With must_be_able_to_end(),
// every reachable state must also be able to reach a final state by fair steps alone: there is no
// trap in which the live actors only run in circles.
//
// What it does not know: it interleaves steps as if memory were sequentially consistent, and it
// proves the settings it is given, not all sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cutwater::model {

using u8 = std::uint8_t;

// Models count in bytes. Every value they reach is far below 256 (the ghost arrays are shorter).
constexpr u8 small(int value) { return static_cast<u8>(value); }

// Actors are numbered from 0; steps of the world carry this number.
inline constexpr u8 kWorld = 99;

// A step as a trace shows it. `what` must live as long as the program (a literal).
struct Step {
  u8 actor;
  const char* what;
  bool fair;
};

struct Outcome {
  const char* broken = nullptr;     // the rule that broke; nullptr: all hold
  bool gave_up = false;             // more states than allowed: nothing was shown
  std::uint64_t states = 0;
  std::uint64_t steps = 0;
  std::vector<std::string> trace;   // when broken: the shortest run that leads there
};

// Beyond this a setting is too large to be a test (2 to 3 GB with the states of these models).
inline constexpr std::uint64_t kStatesMax = 16'000'000;

template <class StateType>
class Model {
 public:
  using State = StateType;
  // No padding: states are compared and hashed as bytes.
  static_assert(std::has_unique_object_representations_v<State>);

  class Sink {
   public:
    virtual void add(const State& next, Step step) = 0;

   protected:
    ~Sink() = default;
  };

  virtual ~Model() = default;
  virtual State initial() const = 0;
  // Gives every step out of `from` to the sink, with the state it leads to.
  virtual void successors(const State& from, Sink& sink) = 0;
  virtual void check(const State&) {}
  virtual void check_final(const State&) {}
  virtual bool must_be_able_to_end() const { return true; }

  // What broke since the last call; the first reason wins.
  const char* take_broken() { return std::exchange(broken_, nullptr); }

 protected:
  void fail(const char* why) {
    if (broken_ == nullptr) broken_ = why;
  }

  // One step: a copy of `from`, changed, handed to the sink together with what it broke.
  template <class Change>
  static void go(const State& from, Sink& sink, Step step, Change change) {
    State next = from;
    change(next);
    sink.add(next, step);
  }

 private:
  const char* broken_ = nullptr;
};

// Every state seen so far, with the step that first led to it.
// States live in chunks: a vector would hold two copies of everything while it grows.
template <class State>
class StateStore {
 public:
  static constexpr std::uint32_t kNone = ~0u;

  StateStore() : table_(1 << 16, kNone) {}

  std::uint32_t size() const { return static_cast<std::uint32_t>(origins_.size()); }
  const State& operator[](std::uint32_t index) const {
    return chunks_[index >> kChunkBits][index & (kChunk - 1)];
  }

  // The index of `state`, which is stored when it is new.
  std::uint32_t add(const State& state, std::uint32_t parent, Step step) {
    std::size_t slot = hash(state) & (table_.size() - 1);
    for (; table_[slot] != kNone; slot = (slot + 1) & (table_.size() - 1)) {
      if (std::memcmp(&(*this)[table_[slot]], &state, sizeof state) == 0) return table_[slot];
    }
    const std::uint32_t index = size();
    table_[slot] = index;
    if ((index & (kChunk - 1)) == 0) chunks_.push_back(std::make_unique<State[]>(kChunk));
    chunks_.back()[index & (kChunk - 1)] = state;
    origins_.push_back({parent, label(step)});
    if (std::size_t{size()} * 2 > table_.size()) grow();
    return index;
  }

  // The run from the initial state to `index`, one line a step: "actor: what".
  std::vector<std::string> run_to(std::uint32_t index) const {
    std::vector<std::string> backwards;
    for (; origins_[index].parent != kNone; index = origins_[index].parent) {
      backwards.push_back(line(labels_[origins_[index].label]));
    }
    return {backwards.rbegin(), backwards.rend()};
  }

  static std::string line(Step step) { return std::to_string(step.actor) + ": " + step.what; }

 private:
  static constexpr std::uint32_t kChunkBits = 14;
  static constexpr std::uint32_t kChunk = 1u << kChunkBits;
  struct Origin {
    std::uint32_t parent;
    std::uint32_t label;
  };

  static std::size_t hash(const State& state) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&state);
    std::uint64_t h = 0x9E3779B97F4A7C15ull;
    std::size_t i = 0;
    for (; i + 8 <= sizeof state; i += 8) {
      std::uint64_t word;
      std::memcpy(&word, bytes + i, 8);
      h = (h ^ word) * 0xff51afd7ed558ccdull;
      h ^= h >> 32;
    }
    for (; i < sizeof state; ++i) h = (h ^ bytes[i]) * 0x100000001b3ull;
    h ^= h >> 29;
    return static_cast<std::size_t>((h * 0xc4ceb9fe1a85ec53ull) >> 7);
  }

  void grow() {
    table_.assign(table_.size() * 2, kNone);
    for (std::uint32_t index = 0; index < size(); ++index) {
      std::size_t slot = hash((*this)[index]) & (table_.size() - 1);
      while (table_[slot] != kNone) slot = (slot + 1) & (table_.size() - 1);
      table_[slot] = index;
    }
  }

  // A model has a few dozen labels; the literals' addresses tell them apart.
  std::uint32_t label(Step step) {
    for (std::uint32_t i = 0; i < labels_.size(); ++i) {
      if (labels_[i].what == step.what && labels_[i].actor == step.actor) return i;
    }
    labels_.push_back(step);
    return static_cast<std::uint32_t>(labels_.size() - 1);
  }

  std::vector<std::unique_ptr<State[]>> chunks_;
  std::vector<Origin> origins_;
  std::vector<Step> labels_;
  std::vector<std::uint32_t> table_;
};

template <class State>
class Explorer final : private Model<State>::Sink {
 public:
  Explorer(Model<State>& model, std::uint64_t states_max)
      : model_(model), ends_(model.must_be_able_to_end()), states_max_(states_max) {}

  Outcome run() {
    states_.add(model_.initial(), StateStore<State>::kNone, {kWorld, "start", false});
    for (current_ = 0; current_ < states_.size() && !outcome_.broken; ++current_) {
      expand();
      outcome_.gave_up = states_.size() > states_max_;
      if (outcome_.gave_up) break;
    }
    if (ends_ && !outcome_.broken && !outcome_.gave_up) look_for_traps();
    outcome_.states = states_.size();
    return std::move(outcome_);
  }

 private:
  struct Edge {
    std::uint32_t from;
    std::uint32_t to;
  };

  void expand() {
    const State state = states_[current_];
    model_.check(state);
    if (broke(nullptr)) return;
    final_ = true;
    model_.successors(state, *this);
    if (outcome_.broken || !final_) return;
    if (ends_) finals_.push_back(current_);
    model_.check_final(state);
    broke(nullptr);
  }

  void add(const State& next, Step step) override {
    if (outcome_.broken) return;
    ++outcome_.steps;
    if (broke(&step)) return;
    const std::uint32_t index = states_.add(next, current_, step);
    if (!step.fair || index == current_) return;
    final_ = false;
    if (ends_) edges_.push_back({current_, index});
  }

  bool broke(const Step* last) {
    const char* why = model_.take_broken();
    if (why == nullptr) return false;
    outcome_.broken = why;
    outcome_.trace = states_.run_to(current_);
    if (last != nullptr) outcome_.trace.push_back(StateStore<State>::line(*last));
    return true;
  }

  // Backwards over the fair steps from the final states: who is not reached cannot end.
  void look_for_traps() {
    const std::uint32_t count = states_.size();
    std::vector<std::uint32_t> first(std::size_t{count} + 1, 0);  // where the edges into i begin
    for (const Edge& edge : edges_) ++first[std::size_t{edge.to} + 1];
    for (std::uint32_t i = 0; i < count; ++i) first[i + 1] += first[i];
    std::vector<std::uint32_t> source(edges_.size());
    std::vector<std::uint32_t> place(first.begin(), first.end() - 1);
    for (const Edge& edge : edges_) source[place[edge.to]++] = edge.from;

    std::vector<bool> can_end(count, false);
    std::vector<std::uint32_t> open;
    const auto reach = [&](std::uint32_t state) {
      if (can_end[state]) return;
      can_end[state] = true;
      open.push_back(state);
    };
    for (const std::uint32_t state : finals_) reach(state);
    while (!open.empty()) {
      const std::uint32_t state = open.back();
      open.pop_back();
      for (std::uint32_t i = first[state]; i < first[state + 1]; ++i) reach(source[i]);
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      if (can_end[i]) continue;
      outcome_.broken = "live actors run in circles: no way to an end";
      outcome_.trace = states_.run_to(i);
      return;
    }
  }

  Model<State>& model_;
  const bool ends_;
  const std::uint64_t states_max_;
  StateStore<State> states_;
  std::vector<Edge> edges_;  // the fair ones; empty when nobody asks for them
  std::vector<std::uint32_t> finals_;
  Outcome outcome_;
  std::uint32_t current_ = 0;
  bool final_ = true;
};

// Visits every state of `model` that can be reached, up to the first that breaks a rule. Gives up
// when there are more than `states_max`.
template <class State>
Outcome explore(Model<State>& model, std::uint64_t states_max = kStatesMax) {
  return Explorer<State>(model, states_max).run();
}

}  // namespace cutwater::model
