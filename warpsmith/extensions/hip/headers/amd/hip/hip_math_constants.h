#pragma once
#define HIP_INF_F __builtin_inff()
#define HIP_NAN_F __builtin_nanf("")
#define HIP_MIN_DENORM_F __FLT_DENORM_MIN__
#define HIP_MAX_NORMAL_F __FLT_MAX__
#define HIP_INF __builtin_inf()
#define HIP_NAN __builtin_nan("")
#define HIP_PI_F 3.14159265358979323846f
#define HIP_PI 3.14159265358979323846
