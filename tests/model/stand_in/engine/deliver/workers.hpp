// Nothing: what engine/deliver/pull.cpp asks of the workers is in the stand-in for
// channel_core.hpp.
#pragma once
#include "engine/channel/channel_core.hpp"
