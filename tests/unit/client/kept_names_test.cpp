// SPDX-License-Identifier: Apache-2.0
// `instance.remember-keys` of an in-memory client: every way to ask for a key leaves its name, and
// a forked child leaves some too.
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "rows/key_rows.hpp"
#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

class KeptNames : public InMemory {
 protected:
  /// The names of keys in debt, with `cut` behind those that are.
  std::map<std::string, int> names(const std::string& name = "api") {
    std::map<std::string, int> out;
    std::uint64_t from = 0;
    do {
      const auto page = rows::key_page(view(), {.limit = name, .from = from});
      EXPECT_TRUE(page);
      for (const wire::Value& row : page->rows) {
        const std::string* text = row.find("key")->as_binary();
        if (text == nullptr) text = row.find("key")->as_string();
        ++out[*text + (*row.find("cut")->as_bool() ? " cut" : "")];
      }
      from = page->next;
    } while (from != 0);
    return out;
  }
};

TEST_F(KeptNames, EveryWayToAskForAKeyLeavesItsName) {
  start("instance: { remember-keys: true }\n"
        "limits: { api: { rate: 1/h, burst: 9, show-keys: shown, max-wait: 1s }, "
        "two: { windows: [ 1/h, 1/d ], show-keys: shown }, "
        "leased: { rate: 1/h, burst: 64, thread-lease: 4, show-keys: shown } }");
  Limit api = limit(), two = limit("two"), leased = limit("leased");
  Key handle = api.key("handle");
  api.try_acquire("string");
  handle.try_acquire();
  const std::string_view batch[] = {"batch", ""};
  Decision answers[2];
  api.acquire_batch(batch, answers);
  (void)api.acquire("waits", {.max_wait = 1s});
  (void)api.reserve("reserves", {});
  (void)api.charge("after", 2);
  (void)client->acquire_all({{api, "all"}, {two, "all"}});
  (void)leased.try_acquire("leased");
  (void)api.try_acquire(std::string(40, 'x'));
  (void)api.peek("looked at");

  const std::map<std::string, int> expected = {
      {"string", 1}, {"handle", 1}, {"batch", 1}, {"", 1}, {"waits", 1}, {"reserves", 1},
      {"after", 1}, {"all", 1}, {std::string(31, 'x') + " cut", 1}};
  EXPECT_EQ(names(), expected);
  EXPECT_EQ(names("two"), (std::map<std::string, int>{{"all", 2}}));
  EXPECT_EQ(names("leased"), (std::map<std::string, int>{{"leased", 1}}));
}

TEST_F(KeptNames, AForkedChildLeavesNamesToo) {
  start("instance: { remember-keys: true }\nlimits: { api: { rate: 1/h, show-keys: shown } }");
  Limit api = limit();
  const pid_t child = fork();
  if (child == 0) {
    api.try_acquire("of the child");
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);

  EXPECT_EQ(names(), (std::map<std::string, int>{{"of the child", 1}}));
}

TEST_F(KeptNames, WithoutTheSettingKeysHaveNumbers) {
  start("limits: { api: { rate: 1/h, show-keys: shown } }");
  limit().try_acquire("alice");

  const auto found = names();

  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.begin()->first.size(), 13U);
  EXPECT_EQ(found.begin()->first.front(), '#');
}

}  // namespace
}  // namespace cutwater::test
