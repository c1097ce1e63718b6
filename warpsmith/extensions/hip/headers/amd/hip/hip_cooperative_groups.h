#pragma once
#error "hip_cooperative_groups.h for AMD is in ROCm's headers, and they are missing here"
