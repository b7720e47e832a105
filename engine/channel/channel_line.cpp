#include "engine/channel/channel_line.hpp"

namespace ringmain::engine {

constinit ChannelLine nowhere{.state = ChannelLine::kClosing, .leased = 0};
constinit ChannelLine forked_nowhere{.state = ChannelLine::kClosing | ChannelLine::kForked,
                                     .leased = 0};

}  // namespace ringmain::engine
