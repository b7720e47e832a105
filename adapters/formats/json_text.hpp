// How is JSON written? As the bus does it: its door answers in JSON, too.
#pragma once
#include "../../bus/json_text.hpp"
