#pragma once
#error "hip_complex.h for AMD is in ROCm's headers, and they are missing here"
