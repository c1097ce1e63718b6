#pragma once
#error "hipcub.hpp for AMD is in ROCm's headers, and they are missing here"
