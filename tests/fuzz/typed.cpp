#include "tests/fuzz/typed.hpp"

#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace ringmain::fuzz {
namespace {

template <class E>
struct HearEvent : Captured {
  explicit HearEvent(const Captured& c) : Captured(c) {}
  void operator()(const E& e) { to().heard(subscriber(), e.mark, e.intact(), nullptr); }
};
template <class E>
struct HearStamped : Captured {
  explicit HearStamped(const Captured& c) : Captured(c) {}
  void operator()(const E& e, const Stamp& s) { to().heard(subscriber(), e.mark, e.intact(), &s); }
};
template <class E>
struct HearMany : Captured {
  explicit HearMany(const Captured& c) : Captured(c) {}
  void operator()(Batch<E> batch) {
    std::vector<Heard> all;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Stamp s = batch.stamp(i);
      all.push_back({batch[i].mark, 0, s.sequence, s.time_ns, Outcome::returned, batch[i].intact(),
                     s.time_from != TimeFrom::worker});
    }
    to().heard_all(subscriber(), all);
  }
};
template <class E>
struct Wants : Captured {
  explicit Wants(const Captured& c) : Captured(c) {}
  bool operator()(const E& e) { return to().wanted(subscriber(), e.mark, e.intact()); }
};
template <class E>
struct Judge : Captured {
  explicit Judge(const Captured& c) : Captured(c) {}
  Verdict operator()(const E& e) const { return to().judged(subscriber(), e.mark, e.intact()); }
};
template <class E>
std::uint32_t key_of(const E& e) {
  return e.mark.key();
}

template <class E, class Lane>
class TypedPublisher : public AnyPublisher {
 public:
  explicit TypedPublisher(Lane lane) : lane_(std::move(lane)) {}
  PublishResult say(const Mark& mark) override { return at().publish(E::make(mark)); }
  PublishResult publish_with(const Mark& mark, const std::function<void()>& inside) override {
    return at().publish_with([&]() -> E {
      inside();
      return E::make(mark);
    });
  }
  PublishResult publish_at(const Mark& mark, std::int64_t time_ns) override {
    if constexpr (kOwn)
      return at().publish_at(E::make(mark), time_ns);
    else
      return at().publish(E::make(mark));
  }
  BatchResult publish_all(std::span<const Published> said) override {
    std::vector<E> events;
    for (const Published& s : said) events.push_back(E::make(s.mark));
    return at().publish_all(events);
  }
  [[nodiscard]] Ledger ledger() const override {
    if constexpr (kOwn)
      return lane_.ledger();
    else
      return {};
  }
  void move_about() override {
    if constexpr (kOwn) {
      Publisher<E> there(std::move(lane_));
      if (at().publish(E::make({})) != PublishCode::closed) std::abort();  // it is empty now
      Publisher<E> further;
      further = std::move(there);
      lane_.swap(further);
    }
  }

 private:
  static constexpr bool kOwn = std::is_same_v<Lane, Publisher<E>>;
  auto& at() {
    if constexpr (kOwn)
      return lane_;
    else
      return *lane_;
  }
  Lane lane_;
};

/// Reads an event of any type.
void read_view(const Read& read, const EventView& view) {
  [&]<std::size_t... kType>(std::index_sequence<kType...>) {
    const auto one = [&]<std::size_t kOne>(std::integral_constant<std::size_t, kOne>) {
      const auto* e = view.as<Said<kOne>>();
      if (e == nullptr) return false;
      read(&e->mark, e->intact() && view.channel() == kNames[kOne], view.stamp());
      return true;
    };
    if (!(one(std::integral_constant<std::size_t, kType>{}) || ...)) read(nullptr, false, {});
  }
  (std::make_index_sequence<kTypes>{});
}

/// Memory for a run, with a margin after it that nobody may write.
class Room {
 public:
  static std::byte* make(void* self, std::size_t bytes) noexcept {
    return static_cast<Room*>(self)->of(bytes);
  }
  [[nodiscard]] bool held() const {
    for (std::size_t i = 0; i < kMargin && !bytes_.empty(); ++i) {
      if (at()[used_ + i] != std::byte{0xa5}) return false;
    }
    return true;
  }

 private:
  enum : std::size_t { kMargin = 512, kFarthest = 300'000 };
  [[nodiscard]] std::byte* at() const {
    return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(bytes_.data()) + 15) &
                                        ~std::uintptr_t{15});
  }
  std::byte* of(std::size_t bytes) noexcept {
    bytes_.assign(bytes + 16 + kMargin + kFarthest, std::byte{0xa5});
    used_ = bytes;
    return at();
  }
  std::vector<std::byte> bytes_;
  std::size_t used_ = 0;
};

template <class Box>
class Opened : public AnyBox {
 public:
  explicit Opened(Box box) : box_(std::move(box)) {}
  std::size_t drain(const Read& read, std::size_t max) override { return box_.drain_by(read, max); }
  std::size_t take_run(const Read& read, std::size_t max, bool& held) override {
    if (!box_.attached()) return 0;
    Room room;
    engine::Run run;
    detail::PullMailbox& raw = *box_.raw();
    if (!detail::take_run_of(raw, &Room::make, &room, max, run)) return 0;
    held = room.held();
    for (std::size_t i = 0; held && i < run.count; ++i) {
      const Stamp stamp = detail::stamp_of(run, i);
      read_view(read, detail::view_of(run, i, stamp));
    }
    detail::finish_run_of(raw);
    return run.count;
  }
  [[nodiscard]] MailboxBase& base() override { return box_; }
  void move_about() override {
    Box there(std::move(box_));
    box_ = std::move(there);
  }

 private:
  Box box_;
};
template <class E>
struct BoxOf : Mailbox<E> {
  explicit BoxOf(Mailbox<E> box) : Mailbox<E>(std::move(box)) {}
  detail::PullMailbox* raw() { return this->box_; }
  std::size_t drain_by(const Read& read, std::size_t max) {
    return this->drain([&](const E& e, const Stamp& s) { read(&e.mark, e.intact(), s); }, max);
  }
};
struct BoxOfAny : AnyMailbox {
  explicit BoxOfAny(AnyMailbox box) : AnyMailbox(std::move(box)) {}
  detail::PullMailbox* raw() { return this->box_; }
  std::size_t drain_by(const Read& read, std::size_t max) {
    return this->drain([&](const EventView& view) { read_view(read, view); }, max);
  }
};

template <class E>
class TypedChannel : public AnyChannel {
 public:
  explicit TypedChannel(Channel<E>& channel) : channel_(channel), own_(&channel) {}
  Result<std::unique_ptr<AnyPublisher>> publisher(const PublisherOptions& options) override {
    auto made = channel_.publisher(options);
    if (!made) return made.error();
    return std::unique_ptr<AnyPublisher>(
        new TypedPublisher<E, Publisher<E>>(std::move(made).value()));
  }
  [[nodiscard]] AnyPublisher& threads_own() override { return own_; }
  [[nodiscard]] Subscription hear(const Captured& by, const std::shared_ptr<Owner>& owner,
                                  const SubscribeOptions& options, std::size_t parts) override {
    switch (by.subscriber().form) {
      case Form::each:
        return channel_.subscribe(HearEvent<E>(by), options);
      case Form::batch:
        return channel_.subscribe_batch(HearMany<E>(by), options);
      case Form::filtered:
        return channel_.subscribe_if(Wants<E>(by), HearStamped<E>(by), options);
      case Form::owned:
        return channel_.subscribe(std::weak_ptr<Owner>(owner), &Owner::template hear<E>, options);
      case Form::latest:
        return channel_.subscribe_latest(&key_of<E>, HearStamped<E>(by), options);
      case Form::judging:
        return channel_.subscribe_inline(Judge<E>(by), options);
      case Form::parted: {
        auto made = channel_.partition_by(&key_of<E>, parts, HearStamped<E>(by), options);
        if (!made) throw made.error();
        return std::move(made).value();
      }
      default:
        return channel_.subscribe(HearStamped<E>(by), options);
    }
  }
  [[nodiscard]] std::unique_ptr<AnyBox> box(Form form, const SubscribeOptions& options) override {
    return std::make_unique<Opened<BoxOf<E>>>(
        BoxOf<E>(form == Form::box_latest ? channel_.mailbox_latest(&key_of<E>, options)
                                          : channel_.mailbox(options)));
  }
  [[nodiscard]] ChannelStats stats() const override { return channel_.stats(); }

 private:
  Channel<E>& channel_;
  TypedPublisher<E, Channel<E>*> own_;
};

template <class Make>
auto of_type(std::size_t type, const Make& make) {
  using Made = decltype(make(std::integral_constant<std::size_t, 0>{}));
  using Maker = Made (*)(const Make&);
  constexpr auto kAll = []<std::size_t... kType>(std::index_sequence<kType...>) {
    return std::array<Maker, sizeof...(kType)>{
        [](const Make& m) { return m(std::integral_constant<std::size_t, kType>{}); }...};
  }
  (std::make_index_sequence<kTypes>{});
  return kAll[type](make);
}

}  // namespace

Result<std::unique_ptr<AnyChannel>> channel_of(Bus& bus, std::size_t type,
                                               const ChannelOptions* options) {
  return of_type(type, [&](auto which) -> Result<std::unique_ptr<AnyChannel>> {
    using E = Said<decltype(which)::value>;
    if (options == nullptr)
      return std::unique_ptr<AnyChannel>(new TypedChannel<E>(bus.channel<E>()));
    auto made = bus.configure<E>(*options);
    if (!made) return made.error();
    return std::unique_ptr<AnyChannel>(new TypedChannel<E>(*made.value()));
  });
}

Subscription hear_pattern(Bus& bus, std::string_view pattern, const Captured& by,
                          const SubscribeOptions& options) {
  return bus.subscribe(
      pattern,
      [by](const EventView& view) {
        read_view(
            [&by](const Mark* m, bool whole, const Stamp& s) {
              if (m == nullptr)
                ++by.subscriber().others;
              else
                by.to().heard(by.subscriber(), *m, whole, &s);
            },
            view);
      },
      options);
}

std::unique_ptr<AnyBox> pattern_box(Bus& bus, std::string_view pattern,
                                    const SubscribeOptions& options) {
  return std::make_unique<Opened<BoxOfAny>>(BoxOfAny(bus.mailbox(pattern, options)));
}

Subscription judge_once_made(Bus& bus, std::size_t type, const Captured& by,
                             const SubscribeOptions& options) {
  return of_type(type, [&](auto which) {
    using E = Said<decltype(which)::value>;
    return bus.subscribe_inline_once_made<E>(Judge<E>(by), options);
  });
}

Subscription hear_ordered(Bus& bus, std::size_t set, const Captured& by,
                          const OrderOptions& options) {
  const auto hear = [by](const auto& e, const Stamp& s) {
    by.to().heard(by.subscriber(), e.mark, e.intact(), &s);
  };
  if (set == 0) return bus.subscribe_ordered<Said<0>, Said<1>>(hear, options);
  if (set == 1) return bus.subscribe_ordered<Said<2>, Said<4>, Said<5>>(hear, options);
  return bus.subscribe_ordered<Said<0>, Said<8>>(hear, options);
}

}  // namespace ringmain::fuzz
