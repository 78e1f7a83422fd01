from mylib.profiler import profile, ProfilerActivity

print(ProfilerActivity.CUDA)
