// Calls, plans and kernels; play_proxy.cpp has the proxy.
#include "tests/harness/nccl/play.hpp"

#include <unistd.h>
#include <utility>

#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

namespace ringmain::nccl_conformance {
namespace {

Plan plan_of(std::vector<Task> tasks, int channels) {
  Plan plan;
  for (Task& task : tasks) task.channels = static_cast<std::uint8_t>(channels);
  plan.communicator = tasks.front().call.communicator;
  plan.stream = tasks.front().call.stream;
  plan.persistent = tasks.front().call.captured;
  plan.tasks = std::move(tasks);
  return plan;
}

}  // namespace

Plan call(FrontEnd& front, const std::vector<Call>& calls, int channels,
          const std::function<void(Plan&)>& launched) {
  front.group_start(true);
  std::vector<Task> tasks;
  for (const Call& one : calls) tasks.push_back(front.append(one));
  Plan plan = plan_of(std::move(tasks), channels);
  front.group_end_begins();
  launched(plan);
  front.group_end();
  return plan;
}

Plan call(FrontEnd& front, const Call& only, int channels,
          const std::function<void(Plan&)>& launched) {
  front.group_start(false);
  Plan plan = plan_of({front.append(only)}, channels);
  front.group_end_begins();
  launched(plan);
  front.group_end();
  return plan;
}

void launch(FrontEnd& front, Plan& plan) {
  front.launch_begins(plan);
  front.launch_ends(plan);
}

void enqueue(FrontEnd& front, Plan& plan, const std::function<void()>& post) {
  front.group_event_begins(plan);
  front.tasks_begin(plan);
  if (post) post();
  front.tasks_end(plan);
  front.group_event_ends(plan);
}

void Device::begin(int channel, std::uint64_t work) {
  begun_[static_cast<std::size_t>(channel)][work % kSlots] = {work, timer_ += 32};
}

void Device::end(int channel, std::uint64_t work) {
  ended_[static_cast<std::size_t>(channel)][work % kSlots] = {work, timer_ += 32};
}

Device::Stamp Device::begun(int channel, std::uint64_t work) const {
  return begun_[static_cast<std::size_t>(channel)][work % kSlots];
}

Device::Stamp Device::ended(int channel, std::uint64_t work) const {
  return ended_[static_cast<std::size_t>(channel)][work % kSlots];
}

void KernelWatch::append(const Plan& plan) {
  std::array<std::uint64_t, Device::kChannels> of_pair{};
  bool second_of_pair = false;
  for (const Task& task : plan.tasks) {
    if (!any_of(task.mask, nccl::abi::kKernelCh)) continue;
    const bool shared =
        task.call.point_to_point() && std::exchange(second_of_pair, !second_of_pair);
    for (int channel = 0; channel < task.channels; ++channel) {
      const auto place = static_cast<std::size_t>(channel);
      if (!shared) of_pair[place] = device_.next(channel);
      if (free_.empty()) {
        free_.push_back(pool_.emplace_back(std::make_unique<ProxyArguments>()).get());
      }
      ProxyArguments* const arguments = free_.back();
      free_.pop_back();
      arguments->used = 1;
      Sub& sub = arguments->subs[0];
      sub.channel = channel;
      sub.mask = task.mask;
      sub.context = plan.communicator->context;
      sub.task = task.event;
      sub.work = of_pair[place];
      if (!kernels_by_proxy(release_)) sub.kernel = nullptr;  // its works are cleared
      works_.push_back({arguments});
    }
  }
}

std::size_t KernelWatch::look(const std::function<void()>& between) {
  std::vector<bool> skipped(works_.size());
  for (std::size_t i = 0; i < works_.size(); ++i) {
    Sub& sub = works_[i].arguments->subs[0];
    const Device::Stamp begun = device_.begun(sub.channel, sub.work);
    if (works_[i].begun || sub.work > begun.counter) continue;
    front_.kernel_begins(*works_[i].arguments, 0, begun.timer);
    works_[i].begun = true;
    skipped[i] = kernels_by_proxy(release_);  // the end of this one is for the next look
  }
  if (between) between();
  std::vector<Work> left;
  for (std::size_t i = 0; i < works_.size(); ++i) {
    Work& work = works_[i];
    const Sub& sub = work.arguments->subs[0];
    const Device::Stamp ended = device_.ended(sub.channel, sub.work);
    // Until 2.30 an end is told without a begin, by the handle that the sub had before.
    const bool over =
        sub.work <= ended.counter && !skipped[i] && (work.begun || kernels_by_proxy(release_));
    if (!over) {
      left.push_back(work);
      continue;
    }
    front_.kernel_ends(*work.arguments, 0, ended.timer);
    free_.push_back(work.arguments);
  }
  works_ = std::move(left);
  return works_.size();
}

void KernelWatch::run() {
  for (const Work& work : works_) {
    device_.begin(work.arguments->subs[0].channel, work.arguments->subs[0].work);
  }
  (void)look();
  for (const Work& work : works_) {
    device_.end(work.arguments->subs[0].channel, work.arguments->subs[0].work);
  }
  (void)look();
}

}  // namespace ringmain::nccl_conformance
