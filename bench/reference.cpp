// SPDX-License-Identifier: Apache-2.0
#include "reference.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <boost/functional/hash.hpp>
#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/containers/string.hpp>
#include <boost/interprocess/managed_shared_memory.hpp>
#include <boost/interprocess/sync/interprocess_mutex.hpp>
#include <boost/interprocess/sync/scoped_lock.hpp>
#include <boost/unordered_map.hpp>

#include "harness.hpp"

namespace cutwater::bench {

namespace ipc = boost::interprocess;

void* shared_pages(std::size_t bytes) {
  void* place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (place == MAP_FAILED) {
    std::perror("cutwater-bench: mmap");
    std::exit(1);
  }
  return place;
}

void release_pages(void* place, std::size_t bytes) { munmap(place, bytes); }

namespace {

struct Bucket {
  double tokens;
  std::int64_t stamp;
};
using Manager = ipc::managed_shared_memory::segment_manager;
using Text = ipc::basic_string<char, std::char_traits<char>, ipc::allocator<char, Manager>>;
struct TextHash {
  std::size_t operator()(const Text& text) const {
    return boost::hash_range(text.begin(), text.end());
  }
};
using Entry = std::pair<const Text, Bucket>;
using Map = boost::unordered_map<Text, Bucket, TextHash, std::equal_to<Text>,
                                 ipc::allocator<Entry, Manager>>;

constexpr double kRatePerNs = 1e-2, kBurst = 1e9;

}  // namespace

struct NaiveLimiter::Inside {
  std::string name;
  ipc::managed_shared_memory memory;
  Map* map;
  ipc::interprocess_mutex* mutex;
};

NaiveLimiter::NaiveLimiter(std::size_t keys) : inside_(new Inside) {
  inside_->name = "cutwater-bench-naive-" + std::to_string(getpid());
  ipc::shared_memory_object::remove(inside_->name.c_str());
  inside_->memory = ipc::managed_shared_memory(ipc::create_only, inside_->name.c_str(),
                                               keys * 220 + (16 << 20));
  Manager* manager = inside_->memory.get_segment_manager();
  inside_->map = inside_->memory.construct<Map>("map")(keys, TextHash(), std::equal_to<Text>(),
                                                       ipc::allocator<Entry, Manager>(manager));
  inside_->mutex = inside_->memory.construct<ipc::interprocess_mutex>("mutex")();
}

NaiveLimiter::~NaiveLimiter() {
  ipc::shared_memory_object::remove(inside_->name.c_str());
}

void NaiveLimiter::add(std::string_view key) {
  ipc::allocator<char, Manager> allocator(inside_->memory.get_segment_manager());
  inside_->map->emplace(Text(key.data(), key.size(), allocator), Bucket{kBurst, 0});
}

bool NaiveLimiter::take(std::string_view key) {
  const std::int64_t now = read_boottime();
  ipc::scoped_lock<ipc::interprocess_mutex> lock(*inside_->mutex);
  ipc::allocator<char, Manager> allocator(inside_->memory.get_segment_manager());
  Bucket& bucket = inside_->map->find(Text(key.data(), key.size(), allocator))->second;
  if (now > bucket.stamp) {
    const double refilled = bucket.tokens + static_cast<double>(now - bucket.stamp) * kRatePerNs;
    bucket.tokens = std::min(kBurst, refilled);
    bucket.stamp = now;
  }
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

Keys::Keys(std::size_t count) : text_(count * kLength) {
  for (std::size_t i = 0; i < count; ++i) put(i, static_cast<std::uint32_t>(i));
}

Keys::Keys(const std::vector<std::uint32_t>& order) : text_(order.size() * kLength) {
  for (std::size_t i = 0; i < order.size(); ++i) put(i, order[i]);
}

void Keys::put(std::size_t place, std::uint32_t key) {
  char text[kLength + 8];
  std::snprintf(text, sizeof text, "tenant-7/user-%010u", key);
  std::memcpy(text_.data() + place * kLength, text, kLength);
}

std::vector<std::uint32_t> uniform_order(std::size_t length, std::size_t keys) {
  Random random(7);
  std::vector<std::uint32_t> order(length);
  for (std::uint32_t& index : order) index = static_cast<std::uint32_t>(random() % keys);
  return order;
}

}  // namespace cutwater::bench
