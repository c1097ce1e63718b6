#pragma once
#define HIP_INF_F __builtin_inff()
#define HIP_NAN_F __builtin_nanf("")
#define HIP_MIN_DENORM_F 1.401298464e-45f
#define HIP_MAX_NORMAL_F 3.402823466e+38f
#define HIP_INF __builtin_inf()
#define HIP_NAN __builtin_nan("")
#define HIP_PI_F 3.141592654f
#define HIP_PI 3.1415926535897931e+0
