// PyTorch by its name: `torch`. What it hears, and how, is in bindings/python/ringmain/torch.
#pragma once
#include "adapters/provider.hpp"

namespace ringmain::torch {

[[nodiscard]] registry::Provider provider();

}  // namespace ringmain::torch
