// What callbacks do in a fuzz run: they write down what they hear, throw, say no, publish, reset
// themselves and others, subscribe, and ask for what is refused there.
#include <stdexcept>

#include "tests/fuzz/inside.hpp"
#include "tests/fuzz/scene.hpp"

namespace ringmain::fuzz {
namespace {

/// Notices a second call beside this one.
class Alone {
 public:
  Alone(std::atomic<int>* busy, Faults& faults, const char* who) : busy_(busy) {
    ++inside.callbacks;
    // Relaxed: it finds who overlaps, and must order nothing.
    if (busy_ != nullptr && busy_->exchange(1, std::memory_order_relaxed) != 0)
      faults.add(std::string("calls of a ") + who + " subscriber overlap");
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  ~Alone() {
    if (busy_ != nullptr) busy_->store(0, std::memory_order_relaxed);
    --inside.callbacks;
  }

 private:
  std::atomic<int>* busy_;
};

struct InlineOne {
  InlineOne() { ++inside.inline_ones; }
  InlineOne(const InlineOne&) = delete;
  InlineOne& operator=(const InlineOne&) = delete;
  ~InlineOne() { --inside.inline_ones; }
};

}  // namespace

std::atomic<int>* Scene::busy(Ear& ear) {
  if (ear.judges() || ear.form == Form::parted) return nullptr;
  if (ear.queued()) return &ear.inside;
  std::size_t type = 0;
  while (!ear.channels[type]) ++type;
  return parallel_at(type) ? nullptr : &busy_[type];
}

void Scene::heard(Ear& ear, const Mark& mark, bool whole, const Stamp* stamp) {
  const Alone alone(busy(ear), faults_, to_string(ear.form));
  const std::uint32_t i = journal_.hear(ear, mark, whole, stamp);
  do_inside(ear, mark);
  if (!ear.throws_at(mark)) return;
  if (i < kHeardMax) ear.heard[i].outcome = Outcome::threw;
  fail(ear);
}

void Scene::heard_all(Ear& ear, std::span<const Heard> batch) {
  const Alone alone(busy(ear), faults_, to_string(ear.form));
  bool throws = false;
  for (const Heard& h : batch) throws = throws || ear.throws_at(h.mark);
  for (const Heard& h : batch) {
    const Stamp stamp{h.time_ns, h.sequence, 0,
                      h.known_time ? TimeFrom::publisher : TimeFrom::worker};
    const std::uint32_t i = journal_.hear(ear, h.mark, h.whole, &stamp);
    if (throws && i < kHeardMax) ear.heard[i].outcome = Outcome::threw;
  }
  for (const Heard& h : batch) do_inside(ear, h.mark);
  if (throws) fail(ear);
}

bool Scene::wanted(Ear& ear, const Mark& mark, bool whole) {
  if (ear.wants(mark)) return true;
  const Alone alone(nullptr, faults_, "");
  const std::uint32_t i = journal_.hear(ear, mark, whole, nullptr);
  if (i < kHeardMax) ear.heard[i].outcome = Outcome::filtered;
  return false;
}

Verdict Scene::judged(Ear& ear, const Mark& mark, bool whole) {
  const Alone alone(nullptr, faults_, "");
  const InlineOne one;
  const std::uint32_t i = journal_.hear(ear, mark, whole, nullptr);
  do_inside(ear, mark);
  if (ear.throws_at(mark)) {
    if (i < kHeardMax) ear.heard[i].outcome = Outcome::threw;
    fail(ear);
  }
  return ear.vetoes(mark) ? Verdict::veto(ear.why) : Verdict::allow();
}

void Scene::fail(Ear& ear) {
  const std::uint32_t throws = ear.throws.fetch_add(1) + 1;
  const bool out =
      ear.options.on_throw == OnThrow::detach ||
      (ear.options.on_throw == OnThrow::quarantine && throws >= ear.options.throws_max);
  std::uint64_t not_yet = 0;
  if (out) (void)ear.ailing.compare_exchange_strong(not_yet, journal_.step());
  throw std::runtime_error("as asked");
}

void Scene::do_inside(Ear& ear, const Mark& mark) {
  const std::uint32_t habit = ear.habit;
  const std::uint32_t act = mark.act();
  const std::size_t type = mark.more() % kTypes;
  // A chain of inline callbacks on one channel, to where it is too deep.
  if ((habit & 4) != 0 && act == 4 && ear.judges() && mark.depth() < 12 && !full_of_events()) {
    std::size_t here = 0;
    while (!ear.channels[here]) ++here;
    return speak(here, mark.deeper(), 1, 0);
  }
  if (act < 3 || act > 9 || (habit >> (act - 1) & 1) == 0) return;
  if (ear.acts_left.load() == 0 || ear.acts_left.fetch_sub(1) > 1000) return;
  switch (act) {
    case 3:
      if (mark.depth() < 2)
        speak(type, mark.deeper() & ~0xf8u, 1 + mark.more() % 3, mark.more() % 8);
      return;
    case 5:
      return reset_inside(ear);
    case 6:
      if (const std::size_t n = journal_.ears(); n != 0) {
        Held* other = held_of_[mark.more() % n];
        if (other != nullptr && other->ear != nullptr) reset_inside(*other->ear);
      }
      return;
    case 7:
      faults_.expect(!bus_->flush(kLong), "flush() in a callback waited");
      faults_.expect(bus_->stop().refused, "stop() in a callback stopped");
      if (manual_) faults_.expect_equal(manual_->deliver(), 0, "deliver() in a callback");
      return;
    case 8:
      if (mark.depth() == 0) {
        Ear* late = journal_.ear(mark.more() % 3 == 0 ? Form::isolated : Form::stamped);
        if (late == nullptr) return;
        late->channels[type] = true;
        attach(nullptr, *late, {static_cast<std::uint32_t>(type), 0, 0, mark.what});
      }
      return;
    default: {  // a lane of one: blocking in a callback is refused
      Voice* voice = nullptr;
      PublisherOptions options;
      options.capacity_events = 1;
      options.overflow = Overflow::block;
      auto out = channel(type).voice(options);
      if (!out || (voice = journal_.voice(type, options, false)) == nullptr) return;
      say_by(*voice, *out.value(), mark.deeper() & ~0xf8u, 3, 0);
    }
  }
}

void Scene::reset_inside(Ear& ear) {
  Held* held = held_of_[ear.id];
  if (held == nullptr) return;
  const std::unique_lock mine(held->lock, std::try_to_lock);
  if (!mine || !held->handle.attached()) return;
  std::uint64_t not_yet = 0;
  (void)ear.closing.compare_exchange_strong(not_yet, journal_.step());
  faults_.expect(held->handle.reset() == Detached::deferred,
                 "reset() in a callback was not deferred");
  faults_.expect(!held->handle.attached(), "a subscription is attached after reset()");
  not_yet = 0;
  (void)ear.closed.compare_exchange_strong(not_yet, journal_.step());
}

}  // namespace ringmain::fuzz
