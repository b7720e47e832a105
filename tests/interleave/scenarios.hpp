// The scenarios, file by file, each a question about every schedule.
#pragma once

namespace ringmain::interleave {

void park();
void flush();
void stop_drain();
void stop_abort();
void blocked();
void leases();
void lanes();
void segments();
void turns();

void detach();
void deferred();
void mailboxes();
void pull();
void thread_lanes();

void again();
void rarely();
void accounts();
void handlers();

void parallel();
void merged();
void own_thread();
void coalesced();
void rests();

void inline_calls();
void evicts();
void house();

void presence();
void presence_once();
void presence_ends();
void presence_handed_on();
void exit_key();

void flight_ring();
void recording_ends();

void tokens();
void notes();

}  // namespace ringmain::interleave
