/* nccl.h includes it for its users, and takes nothing from it. */
#pragma once
