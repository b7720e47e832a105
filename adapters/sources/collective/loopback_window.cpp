// What others write to one rank's memory, and how it knows.
#include <cstring>
#include <utility>

#include "adapters/sources/collective/loopback_core.hpp"

namespace ringmain::collective::loopback {

struct Window::Held {
  explicit Held(std::shared_ptr<detail::End> of) : end(std::move(of)) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { close(); }
  void close() const noexcept {
    if (state == nullptr) return;
    const std::lock_guard lock(end->group->mutex);
    state->closed[static_cast<std::size_t>(end->rank)] = true;
  }
  const std::shared_ptr<detail::End> end;
  std::shared_ptr<detail::WindowState> state{};  // once all ranks have made it
};

namespace detail {

Work End::on_window(std::string_view op, Tensors input, std::int32_t peer,
                    const std::function<Ending(std::unique_lock<std::mutex>&)>& act) {
  const auto made = pending(op);
  const Work work(made);
  if (refused_here(*made)) return work;
  Other other;
  other.op = op;
  other.input = input;
  other.peer = peer;
  other.point_to_point = true;
  Issuing issuing = comm.issue(other);
  if (!issuing) return refuse(*made, issuing.reason()), work;
  made->operation = issuing.operation();
  {
    const Operation::Waiting waits(made->operation);
    std::unique_lock lock(group->mutex);
    const bool known = 0 <= peer && peer < group->size;
    auto ending = known ? act(lock)
                        : failed_as(How::error, "peer is " + std::to_string(peer) +
                                                    ", and the group has ranks 0 to " +
                                                    std::to_string(group->size - 1));
    if (!ending.completed) {
      ending = failed_if_told(ending.how, [&] { return made->what + ": " + ending.reason(); });
    }
    made->ending = std::move(ending);
  }
  if (made->ending->completed) {
    (void)made->operation.completed();
    set_over(*made);
    issuing.returned(&work);
  } else {
    issuing.threw(failed_of(*made->ending));
    set_over(*made);
  }
  return work;
}

Result<Window> End::new_window(const Tensor& memory) {
  const auto made = pending("new_window");
  const auto error = [&made] { return Error{Error::Code::refused, made->ending->reason()}; };
  if (refused_here(*made)) return error();
  const Arguments arguments = NewWindow{};
  auto planned = plan_of_window(memory, group->size);
  const auto held = std::make_shared<Window::Held>(shared_from_this());
  take_places(*made, {&arguments, 1});
  Issuing issuing = comm.issue(arguments);
  if (!issuing) return refuse(*made, issuing.reason()), error();
  if (!meet(made, std::move(planned), issuing)) return error();
  held->state = made->window;
  issuing.returned();
  return Window(held);
}

namespace {

/// Why `tensor` cannot go there; empty: it can.
std::string fault_of_put(const WindowState& window, const Plan& plan, std::size_t to,
                         std::uint64_t offset) {
  const Piece& from = plan.window;
  if (window.closed[to]) return "rank " + std::to_string(to) + " has closed its window";
  if (plan.dtype != window.dtype) {
    return "the tensor is of '" + std::string(plan.dtype.view()) + "', and the window of '" +
           std::string(window.dtype.view()) + "'";
  }
  const std::uint64_t room = window.memory[to].elements;
  if (offset > room || from.elements > room - offset) {
    return std::to_string(from.elements) + " elements from " + std::to_string(offset) +
           " on do not fit into the " + std::to_string(room) + " of rank " + std::to_string(to);
  }
  if (from.elements != 0 && plan.element_bytes != window.element_bytes)
    return "elements of the tensor and of the window have different sizes";
  return {};
}

}  // namespace
}  // namespace detail

using detail::Ending;
using detail::failed_as;

Work Window::put(const Tensor& tensor, std::int32_t peer, std::uint64_t offset) const {
  if (of_ == nullptr) return {};
  return of_->end->on_window(
      "put", {&tensor, 1}, peer, [&](std::unique_lock<std::mutex>&) -> Ending {
        const auto planned = detail::plan_of_window(tensor, of_->end->group->size);
        if (!planned.fault.empty()) return failed_as(How::error, planned.fault);
        if (auto why = of_->end->group->unreachable(peer)) return *why;
        const auto to = static_cast<std::size_t>(peer);
        detail::WindowState& window = *of_->state;
        auto fault = detail::fault_of_put(window, planned.plan, to, offset);
        if (!fault.empty()) return failed_as(How::error, std::move(fault));
        const detail::Piece& from = planned.plan.window;
        if (from.elements != 0) {
          std::memmove(window.memory[to].data + offset * window.element_bytes, from.data,
                       from.elements * window.element_bytes);
        }
        return {};
      });
}

Work Window::signal(std::int32_t peer) const {
  if (of_ == nullptr) return {};
  return of_->end->on_window("signal", {}, peer, [&](std::unique_lock<std::mutex>&) -> Ending {
    if (auto why = of_->end->group->unreachable(peer)) return *why;
    ++of_->state->signals[static_cast<std::size_t>(of_->end->rank)][static_cast<std::size_t>(peer)];
    of_->end->group->changed.notify_all();
    return {};
  });
}

Work Window::wait_signal(std::int32_t peer) const {
  if (of_ == nullptr) return {};
  detail::End& end = *of_->end;
  return end.on_window("wait_signal", {}, peer, [&](std::unique_lock<std::mutex>& lock) {
    auto& count =
        of_->state->signals[static_cast<std::size_t>(peer)][static_cast<std::size_t>(end.rank)];
    return end.group->await_signal(lock, peer, nanoseconds(end.timeout_ns.load()), count);
  });
}

void Window::close() const noexcept {
  if (of_ != nullptr) of_->close();
}

}  // namespace ringmain::collective::loopback
